package main

import (
	"testing"
	"time"

	"joiner/infra/bench/karpenter"
	"joiner/infra/bench/world"
	"joiner/pkg/catalog"
	"joiner/pkg/catalog/builtin"
)

// Both sides make a small cluster cheaper, come to rest, evict nothing that forbids it and leave every pod a node.
func TestBothSidesComeToRest(t *testing.T) {
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	karpenter.Prepare()
	b := bench{patience: 5 * time.Minute, seed: 3, catalog: c}
	for _, kind := range []string{world.HalfEmpty, world.Guarded} {
		r, err := b.one(kind, 8)
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if err := faults([]row{r}); err != nil {
			t.Error(err)
		}
		for tool, o := range map[string]*outcome{"joiner": r.ours, "karpenter": r.theirs} {
			if o.Cut || o.USD >= 0.95*r.usd || o.Moved == 0 {
				t.Errorf("%s, %s: %+v", r.name, tool, *o)
			}
		}
	}
}

// With waves commands are larger than budgets: the cluster is at rest after fewer passes, for less, and no rule is broken.
func TestWaves(t *testing.T) {
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	var passes []int
	var usd []float64
	for _, waves := range []int{1, 10} {
		b := bench{patience: 5 * time.Minute, seed: 3, catalog: c, only: "joiner", what: whatIf{waves: waves}}
		r, err := b.one(world.Guarded, 20)
		if err != nil {
			t.Fatal(err)
		}
		if err := faults([]row{r}); err != nil {
			t.Error(err)
		}
		passes, usd = append(passes, r.ours.Passes), append(usd, r.ours.USD)
	}
	if passes[1] >= passes[0] || usd[1] >= usd[0] {
		t.Errorf("without and with waves: %v passes, %v USD/h", passes, usd)
	}
}

// What a side had spent when it was as cheap as the other is the first point of its course that is, and its end when it never was.
func TestPointOfTheCourse(t *testing.T) {
	o := outcome{USD: 5, Moved: 90, CPU: 9, Course: []point{{12, 0, 1}, {13, 10, 2}, {8, 20, 3}, {9, 30, 4}, {5, 90, 8}}}
	for usd, want := range map[float64]point{12: {12, 0, 1}, 11: {8, 20, 3}, 8.5: {8, 20, 3}, 5: {5, 90, 8}, 4: {5, 90, 9}} {
		if got := o.at(usd); got != want {
			t.Errorf("at %v: %v, want %v", usd, got, want)
		}
	}
}

// A side that is told to do what the world forbids is found out.
func TestFaultsAreFound(t *testing.T) {
	c, err := catalog.Decode(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	w, err := world.Generate(c, world.Guarded, 12, 3)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range w.Sorted() {
		w.Remove(n.Name)
	}
	o := outcome{Faults: w.Faults}
	if faults([]row{{name: w.Name, ours: &o}}) == nil {
		t.Error("pods that forbid it were evicted, and nobody said so")
	}
}
