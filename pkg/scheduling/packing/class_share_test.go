package packing_test

import (
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/manypods"
)

// Pods of other namespaces wait for those of one no longer than is said, though a pass has time for more; a namespace
// that waits alone has all of it.
func TestOthersWaitForNoNamespace(t *testing.T) {
	s := manypods.Services(t, 100)
	s.Pods = append(s.Pods, manypods.Hostile("terms", 40)...)
	s.Rules.DemandMilliseconds, s.Rules.NamespaceMilliseconds = 10_000, 100
	aside := func() int { return len(packing.NewSharedDemand(s).Classes.Aside) }
	if n := aside(); n != 37 {
		t.Errorf("%d pods are left out beside others, want 37", n)
	}
	s.Pods = s.Pods[100:]
	if n := aside(); n != 0 {
		t.Errorf("%d pods are left out alone", n)
	}
}

// Of thousands of namespaces none gets enough for a pod that is much work: they have turns, and each gets its own soon.
func TestNamespacesHaveTurns(t *testing.T) {
	s := manypods.Services(t, 0)
	s.Pods = manypods.Hostile("host selectors", 3000)
	for i, name := range manypods.Namespaces(len(s.Pods)) {
		s.Pods[i].Namespace = name
	}
	s.Rules.DemandMilliseconds, s.Rules.NamespaceMilliseconds = 1000, 125
	served := map[string]bool{}
	for minute := range 8 {
		s.Now = time.Date(2026, 1, 1, 12, minute, 0, 0, time.UTC)
		p := packing.NewSharedDemand(s)
		if n := len(p.Classes.List); n != 833 {
			t.Errorf("minute %d: %d are planned for, want 833", minute, n)
		}
		for _, class := range p.Classes.List {
			served[class.Pod.Namespace] = true
		}
	}
	if len(served) != 3000 {
		t.Errorf("%d of 3,000 namespaces had a turn", len(served))
	}
}

// Within a namespace that is too much work, the classes that are little work come first, and buffers after pods.
func TestLightClassesComeFirst(t *testing.T) {
	s := manypods.Services(t, 0)
	s.Pods = append(manypods.Hostile("terms", 40), manypods.Hostile("sizes", 10)...)
	virtual := manypods.Hostile("ports", 1)
	virtual[0].Virtual = true
	s.Pods = append(s.Pods, virtual...)
	s.Rules.DemandMilliseconds = 100
	kept := map[string]int{}
	p := packing.NewSharedDemand(s)
	for _, class := range p.Classes.List {
		kind, _, _ := strings.Cut(class.Pod.Name, "-")
		kept[kind] += len(class.Pods)
	}
	if kept["sizes"] != 10 || kept["terms"] != 2 || kept["ports"] != 0 {
		t.Errorf("of what is left in the pass: %v", kept)
	}
}
