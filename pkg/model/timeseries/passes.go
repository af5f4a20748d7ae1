package timeseries

import (
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
)

// Disruption holds what one pass decided about disruption. Reasons are Karpenter's, in lower case.
type Disruption struct {
	Took       time.Duration
	Begun      []Decision
	RolledBack []Decision
	Withdrawn  []Decision     // proposals that did not hold
	Eligible   map[string]int // nodes by reason
	Ineligible map[string]int // nodes by reason
	Pools      []string       // the NodePools that there are
}

// Decision is one disruption of nodes that go together.
type Decision struct {
	Reason   string
	Replaces bool
	Claims   int
	Pools    []string // without repetition
}

// name returns Karpenter's name of the decision.
func (d Decision) name() string {
	if d.Replaces {
		return "replace"
	}
	return "delete"
}

// consolidationType is Karpenter's name of the method that decides so, empty for those that do not consolidate.
func (d Decision) consolidationType() string {
	switch {
	case d.Reason == "empty":
		return "empty"
	case d.Reason == "underutilized" && d.Claims > 1:
		return "multi"
	case d.Reason == "underutilized":
		return "single"
	}
	return ""
}

func (d Decision) labels() []string {
	return []string{"decision", d.name(), "reason", d.Reason, "consolidation_type", d.consolidationType()}
}

// CountDisruption counts a pass about disruption. What was counted of NodePools that are gone is dropped.
func (t Totals) CountDisruption(d Disruption, now time.Time) {
	for _, one := range d.Begun {
		t.Count(metrics.Decisions, 1, one.labels()...)
		for _, pool := range one.Pools {
			t.Count(decisionsByPool, 1, append(one.labels(), "nodepool", pool)...)
		}
	}
	for _, one := range d.RolledBack {
		t.Count(metrics.QueueFailures, 1, one.labels()...)
	}
	for _, one := range d.Withdrawn {
		t.Count(metrics.Invalidated, float64(one.Claims), "consolidation_type", one.consolidationType())
	}
	t.Measure(metrics.Evaluation, d.Took, now)
	t.setAll(metrics.Eligible, d.Eligible)
	t.setAll(metrics.IneligibleNodes, d.Ineligible)
	there := lists.SetOf(d.Pools)
	t.keepPools(there)
}

// CountScheduling counts one decision of a controller about where pods go.
func (t Totals) CountScheduling(controller string, took time.Duration, now time.Time) {
	t.Measure(schedulingDuration, took, now, "controller", controller)
}

// setAll sets the gauges by reason, and takes out those of other reasons.
func (t Totals) setAll(family string, byReason map[string]int) {
	maps.DeleteFunc(t, func(_ string, one *Total) bool { return one.Family == family })
	for _, reason := range slices.Sorted(maps.Keys(byReason)) {
		t.Set(family, float64(byReason[reason]), "reason", reason)
	}
}

// keepPools drops what was counted of other NodePools.
func (t Totals) keepPools(there map[string]bool) {
	maps.DeleteFunc(t, func(_ string, one *Total) bool {
		i := slices.IndexFunc(one.Labels, func(l Label) bool { return l.Name == "nodepool" })
		return i >= 0 && !there[one.Labels[i].Value]
	})
}

// WithoutGauges is the totals without those that say how things stood in the last pass.
func (t Totals) WithoutGauges() Totals {
	out := maps.Clone(t)
	maps.DeleteFunc(out, func(_ string, one *Total) bool { return familyKind(one.Family) == Gauge })
	return out
}
