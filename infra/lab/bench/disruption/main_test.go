package main

import (
	"testing"
	"time"

	"joiner.sh/infra/lab/bench/karpenter"
	"joiner.sh/infra/lab/bench/world"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
)

// Both sides make a small cluster cheaper, come to rest, evict nothing that forbids it and leave every pod a node.
func TestBothSidesComeToRest(t *testing.T) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	karpenter.PrepareProcess()
	b := bench{patience: 5 * time.Minute, seed: 3, catalog: c}
	for _, kind := range []string{world.HalfEmpty, world.Guarded} {
		r, err := b.compareCluster(kind, 8)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := findFaults([]row{r}); err != nil {
			t.Error(err)
		}
		for tool, o := range map[string]*outcome{"joiner": r.ours, "karpenter": r.theirs} {
			if o.Cut || o.USD >= 0.95*r.usd || o.Moved == 0 {
				t.Errorf("%s, %s: %+v", r.name, tool, *o)
			}
		}
	}
}

// Joiner comes to rest on small clusters.
func TestComesToRest(t *testing.T) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(4) {
		b := bench{patience: 30 * time.Second, seed: seed + 1, catalog: c, only: "joiner"}
		for _, kind := range world.ClusterKinds() {
			r, err := b.compareCluster(kind, 20)
			if err != nil {
				t.Fatal(err)
			}
			if err := findFaults([]row{r}); err != nil {
				t.Error(err)
			}
			if r.ours.Cut {
				t.Errorf("%s, seed %d: it does not come to rest", r.name, seed+1)
			}
		}
	}
}

// What a side had spent when it was as cheap as the other is the first point of its course that is, and its end when it
// never was.
func TestPointOfTheCourse(t *testing.T) {
	o := outcome{USD: 5, Moved: 90, CPU: 9, Course: []point{{12, 0, 1}, {13, 10, 2}, {8, 20, 3}, {9, 30, 4}, {5, 90, 8}}}
	for usd, want := range map[float64]point{12: {12, 0, 1}, 11: {8, 20, 3}, 8.5: {8, 20, 3}, 5: {5, 90, 8}, 4: {5, 90, 9}} {
		if got := o.firstPointAt(usd); got != want {
			t.Errorf("at %v: %v, want %v", usd, got, want)
		}
	}
}

// guarded is a small cluster of which some pods may not be evicted.
func guarded(t *testing.T) *world.World {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.GenerateWorld(c, world.Guarded, 12, 3)
	if err != nil {
		t.Fatal(err)
	}
	return w
}

// The nodes whose pods may not be evicted stay in the fresh plan, and all others are bought anew.
func TestFreshPlanKeepsWhatMustStay(t *testing.T) {
	w := guarded(t)
	some, err := freshPlan(w)
	if err != nil {
		t.Fatal(err)
	}
	before := w.TotalPrice()
	for _, p := range w.Pods {
		p.Held = true
	}
	all, err := freshPlan(w)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range w.Pods {
		p.Held = false
	}
	none, err := freshPlan(w)
	if err != nil {
		t.Fatal(err)
	}
	if none >= some || some >= all || all > before {
		t.Errorf("fresh plans cost %.3f when no pod is held, %.3f when some are, %.3f when all are; the cluster costs %.3f",
			none, some, all, before)
	}
}

// A side that is told to do what the world forbids is found out.
func TestFaultsAreFound(t *testing.T) {
	w := guarded(t)
	for _, n := range w.SortedNodes() {
		w.RemoveNode(n.Name)
	}
	o := outcome{Faults: w.Faults}
	if findFaults([]row{{name: w.Name, ours: &o}}) == nil {
		t.Error("pods that forbid it were evicted, and nobody said so")
	}
}
