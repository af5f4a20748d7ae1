package cluster

import (
	"testing"

	"joiner.sh/pkg/model/requirements"
)

func TestWhichPodsCount(t *testing.T) {
	pending := Pod{Phase: "Pending", Unscheduled: true}
	with := func(f func(*Pod)) Pod { p := pending; f(&p); return p }
	outside := requirements.None("karpenter.sh/nodepool")
	for _, c := range []struct {
		name                         string
		pod                          Pod
		provisionable, reschedulable bool
	}{
		{"pending", pending, true, true},
		{"gated", with(func(p *Pod) { p.Unscheduled = false }), false, true},
		{"running", with(func(p *Pod) { p.NodeName, p.Phase = "n", "Running" }), false, true},
		{"nominated", with(func(p *Pod) { p.Nominated = "n" }), false, true},
		{"ended", with(func(p *Pod) { p.Phase = "Succeeded" }), false, false},
		{"terminating", with(func(p *Pod) { p.Deleting = noon }), false, false},
		{"terminating, of a StatefulSet", with(func(p *Pod) { p.Deleting, p.Owner = noon, OwnerStatefulSet }), false, true},
		{"of a DaemonSet", with(func(p *Pod) { p.Owner = OwnerDaemonSet }), false, false},
		{"static", with(func(p *Pod) { p.Owner = OwnerNode }), false, false},
		{"of no pool", with(func(p *Pod) { p.NodeAffinity = terms(outside) }), false, true},
		{"of no pool in one of two ways", with(func(p *Pod) { p.NodeAffinity = terms(outside, requirements.Any("x")) }), true, true},
		{"of no pool if it can be", with(func(p *Pod) { p.NodePrefers = prefers(outside, requirements.Any("x")) }), true, true},
		{"of no pool if all else fails", with(func(p *Pod) { p.NodePrefers = prefers(requirements.Any("x"), outside) }), true, true},
		{"of some pool", with(func(p *Pod) { p.NodeAffinity = terms(requirements.Any("karpenter.sh/nodepool")) }), true, true},
	} {
		if c.pod.Provisionable() != c.provisionable || c.pod.Reschedulable() != c.reschedulable {
			t.Errorf("%s: provisionable %t, reschedulable %t", c.name, c.pod.Provisionable(), c.pod.Reschedulable())
		}
	}
}

func TestSelector(t *testing.T) {
	var none *Selector
	web := &Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web"), requirements.None("canary")}}
	if none.Matches(nil) || !(&Selector{}).Matches(nil) || !web.Matches(map[string]string{"app": "web"}) ||
		web.Matches(map[string]string{"app": "web", "canary": "1"}) || web.Matches(nil) {
		t.Error("a selector selects wrongly")
	}
}

func TestEvictionCost(t *testing.T) {
	for _, c := range []struct {
		deletion, priority int32
		want               float64
	}{
		{0, 0, 1}, {1 << 27, 0, 2}, {-1 << 27, 0, 0}, {0, 1 << 25, 2}, {0, -1 << 25, 0}, {1 << 26, 1 << 24, 2},
		{1<<31 - 1, 0, 10}, {-1 << 31, 0, -10}, {0, 2_000_000_000, 10}, {0, -1 << 31, -10},
	} {
		if got := (Pod{DeletionCost: c.deletion, Priority: c.priority}).EvictionCost(); got != c.want {
			t.Errorf("deletion cost %d, priority %d: %v, want %v", c.deletion, c.priority, got, c.want)
		}
	}
}

// terms are required terms of one requirement each.
func terms(rs ...requirements.Requirement) (out [][]requirements.Requirement) {
	for _, r := range rs {
		out = append(out, []requirements.Requirement{r})
	}
	return out
}

// prefers are preferred terms of one requirement each, the heaviest first.
func prefers(rs ...requirements.Requirement) (out []WeightedRequirements) {
	for i, t := range terms(rs...) {
		out = append(out, WeightedRequirements{Weight: int32(len(rs) - i), Requirements: t})
	}
	return out
}
