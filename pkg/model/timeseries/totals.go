package timeseries

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"time"
)

// Limits of what is kept.
const (
	mostRecent   = 500              // observations of a summary
	recentFor    = 10 * time.Minute // for which a summary speaks
	mostTotals   = 20_000
	bucketFirst  = 0.5 // of status conditions
	bucketCount  = 15
	bucketFactor = 2
)

// Totals are values that outlive a pass: what was counted and measured so far, and gauges that only one function knows.
// Of a nil map nothing is read, and nothing may be added to it.
type Totals map[string]*Total

// Total is one counter, gauge, histogram or summary.
type Total struct {
	Family  string   `json:"f"`
	Labels  []Label  `json:"l,omitempty"`
	Value   float64  `json:"v,omitempty"` // the sum of what was measured
	Count   uint64   `json:"c,omitempty"` // of measurements
	Buckets []uint64 `json:"b,omitempty"` // measurements by bucket, not summed up, without the last, infinite one
	Recent  []Recent `json:"r,omitempty"` // of a summary, the oldest first
}

// Recent is one measurement.
type Recent struct {
	At      time.Time `json:"t"`
	Seconds float64   `json:"s"`
}

// Clone is a copy that shares nothing, without nils that somebody stored.
func (t Totals) Clone() Totals {
	out := make(Totals, len(t))
	for k, v := range t {
		if v == nil {
			continue
		}
		c := *v
		c.Buckets, c.Recent = slices.Clone(v.Buckets), slices.Clone(v.Recent)
		out[k] = &c
	}
	return out
}

// Count adds n to a counter. Labels are names and values in turn.
func (t Totals) Count(family string, n float64, labels ...string) {
	if one := t.totalOf(family, labels); one != nil {
		one.Value += n
	}
}

// Set sets a gauge.
func (t Totals) Set(family string, n float64, labels ...string) {
	if one := t.totalOf(family, labels); one != nil {
		one.Value = n
	}
}

// Measure adds a time to a histogram or summary. One below zero, of clocks that differ, counts as zero.
func (t Totals) Measure(family string, took time.Duration, now time.Time, labels ...string) {
	one, f := t.totalOf(family, labels), familyKind(family)
	if one == nil {
		return
	}
	seconds := max(took.Seconds(), 0)
	one.Value += seconds
	one.Count++
	if f == Summary {
		one.Recent = append(slices.DeleteFunc(one.Recent,
			func(r Recent) bool { return now.Sub(r.At) > recentFor }), Recent{now, seconds})
		one.Recent = one.Recent[max(0, len(one.Recent)-mostRecent):]
		return
	}
	bounds := bucketsOf(family)
	if one.Buckets == nil {
		one.Buckets = make([]uint64, len(bounds))
	}
	if i, _ := slices.BinarySearch(bounds, seconds); i < len(one.Buckets) {
		one.Buckets[i]++
	}
}

// totalOf is the total of these labels, made where there is none; nil where there are too many.
func (t Totals) totalOf(family string, pairs []string) *Total {
	labels := makeLabels(pairs...)
	k := seriesKey(family, labels)
	if one, ok := t[k]; ok {
		return one
	}
	if len(t) >= mostTotals {
		return nil
	}
	t[k] = &Total{Family: family, Labels: labels}
	return t[k]
}

func familyKind(family string) Kind {
	f, _ := FindFamily(family)
	return f.Kind
}

// List lists the series of the totals, sorted.
func (t Totals) List(now time.Time) []Series {
	var out []Series
	for _, k := range slices.Sorted(maps.Keys(t)) {
		one := t[k]
		switch familyKind(one.Family) {
		case Histogram:
			out = append(out, one.histogram()...)
		case Summary:
			out = append(out, one.summary(now)...)
		default:
			out = append(out, Series{Name: one.Family, Labels: one.Labels, Value: one.Value, Family: one.Family})
		}
	}
	return out
}

func (t *Total) histogram() []Series {
	var out []Series
	sum := uint64(0)
	for i, bound := range bucketsOf(t.Family) {
		if i < len(t.Buckets) {
			sum += t.Buckets[i]
		}
		out = append(out, t.part("_bucket", float64(sum), withLabel(t.Labels, "le", formatBound(bound))))
	}
	out = append(out, t.part("_bucket", float64(t.Count), withLabel(t.Labels, "le", "+Inf")))
	return append(out, t.part("_count", float64(t.Count), t.Labels), t.part("_sum", t.Value, t.Labels))
}

// summary has no quantiles where nothing was measured lately, as the client library of Prometheus has it NaN.
func (t *Total) summary(now time.Time) []Series {
	var lately []float64
	for _, r := range t.Recent {
		if now.Sub(r.At) <= recentFor {
			lately = append(lately, r.Seconds)
		}
	}
	slices.Sort(lately)
	out := []Series{t.part("_count", float64(t.Count), t.Labels), t.part("_sum", t.Value, t.Labels)}
	for _, q := range []float64{0, 0.5, 0.9, 0.99, 1} {
		value := math.NaN()
		if n := len(lately); n > 0 {
			value = lately[max(int(math.Ceil(q*float64(n)))-1, 0)]
		}
		out = append(out, t.part("", value, withLabel(t.Labels, "quantile", formatBound(q))))
	}
	return out
}

func (t *Total) part(suffix string, value float64, labels []Label) Series {
	return Series{Name: t.Family + suffix, Labels: labels, Value: value, Family: t.Family}
}

func formatBound(f float64) string { return strconv.FormatFloat(f, 'g', -1, 64) }
