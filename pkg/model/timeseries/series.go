package timeseries

import (
	"cmp"
	"slices"
	"strings"
)

// Label is one label of a series.
type Label struct {
	Name  string `json:"n"`
	Value string `json:"v"`
}

// Series is one series with its value now. Labels are sorted by name and none is empty.
type Series struct {
	Name   string  `json:"n"` // with the suffix of a histogram's part
	Labels []Label `json:"l,omitempty"`
	Value  float64 `json:"-"`
	Family string  `json:"f,omitempty"` // the metric's name, to which type and help belong
}

// Key identifies the series.
func (s Series) Key() string { return seriesKey(s.Name, s.Labels) }

func seriesKey(name string, labels []Label) string {
	var b strings.Builder
	b.WriteString(name)
	for _, l := range labels {
		b.WriteByte('\x1f')
		b.WriteString(l.Name)
		b.WriteByte('\x1f')
		b.WriteString(l.Value)
	}
	return b.String()
}

// makeLabels makes labels of names and values in turn. Empty values are left out: Prometheus takes them as absent.
func makeLabels(pairs ...string) []Label {
	out := make([]Label, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			out = append(out, Label{pairs[i], pairs[i+1]})
		}
	}
	slices.SortFunc(out, func(a, b Label) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

// withLabel is the labels with one more.
func withLabel(labels []Label, name, value string) []Label {
	at, _ := slices.BinarySearchFunc(labels, name, func(l Label, n string) int { return cmp.Compare(l.Name, n) })
	return slices.Insert(slices.Clone(labels), at, Label{name, value})
}

// snake is a name of Kubernetes as part of a metric: ephemeral_storage.
func snake(name string) string { return strings.ReplaceAll(strings.ToLower(name), "-", "_") }
