package timeseries

import (
	"os"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/model/metrics"
)

func readLines(t *testing.T, name string) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/" + name)
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSpace(string(text)), "\n")
}

// nodeSeriesLabels returns the labels of the series of a node that has every label, by metric. Karpenter's have another,
// phase, which is empty since Kubernetes no longer tells it, so that Prometheus does not keep it.
func nodeSeriesLabels() map[string][]string {
	s := sample()
	s.Nodes[0].Labels = map[string]string{"team": "a"}
	for _, key := range nodeLabelKeys() {
		s.Nodes[0].Labels[key] = "x"
	}
	got, _ := History{}.List(s, Options{Detail: All})
	out := map[string][]string{}
	for _, one := range got {
		if _, ok := out[one.Name]; !ok {
			out[one.Name] = []string{"phase"}
		}
		for _, l := range one.Labels {
			if !slices.Contains(out[one.Name], l.Name) {
				out[one.Name] = append(out[one.Name], l.Name)
			}
		}
		slices.Sort(out[one.Name])
	}
	return out
}

// TestEveryMetricOfKarpenterIsSentOrOmittedForAReason: testdata/karpenter.txt is what Karpenter registers, which the
// bench compares with its code.
func TestEveryMetricOfKarpenterIsSentOrOmittedForAReason(t *testing.T) {
	omitted, theirs, ofNodes := map[string]bool{}, map[string]bool{}, nodeSeriesLabels()
	for _, line := range readLines(t, "omitted.tsv") {
		name, reason, _ := strings.Cut(line, "\t")
		omitted[name] = true
		if reason == "" {
			t.Errorf("%s is omitted without a reason", name)
		}
	}
	for _, line := range readLines(t, "karpenter.txt") {
		name, labels, _ := strings.Cut(line, " ")
		theirs[name] = true
		f, sent := FindFamily(name)
		if sent == omitted[name] {
			t.Errorf("%s: sent %v, omitted %v", name, sent, omitted[name])
		}
		if !sent {
			continue
		}
		want := strings.Split(labels, ",")
		if labels == "" {
			want = []string{}
		}
		if f.Labels == nil {
			f.Labels = ofNodes[name]
		}
		if !slices.Equal(f.Labels, want) {
			t.Errorf("%s has the labels\n%v, Karpenter's has\n%v", name, f.Labels, want)
		}
	}
	for _, f := range Families() {
		if strings.HasPrefix(f.Name, "karpenter_") && !theirs[f.Name] {
			t.Errorf("Karpenter has no %s", f.Name)
		}
		if f.Help == "" {
			t.Errorf("%s has no help", f.Name)
		}
		if strings.HasSuffix(f.Name, "_total") != (f.Kind == Counter) && f.Name != metrics.PoolCost {
			t.Errorf("%s is of kind %d", f.Name, f.Kind)
		}
	}
}
