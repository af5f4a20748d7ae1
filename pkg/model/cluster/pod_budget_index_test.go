package cluster

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"joiner.sh/pkg/model/requirements"
)

// TestBudgetIndex compares the index with asking every budget, for random budgets and pods.
func TestBudgetIndex(t *testing.T) {
	found := 0
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 3))
		word := func(n int) string { return string("abcdef"[r.IntN(n)]) }
		requirement := func() requirements.Requirement {
			key := "key-" + word(3)
			switch r.IntN(5) {
			case 0:
				return requirements.Requirement{Key: key, Not: true}
			case 1:
				return requirements.Requirement{Key: key, Not: true, Values: []string{word(4)}}
			case 2:
				values := []string{word(4), word(4)}
				slices.Sort(values)
				return requirements.Requirement{Key: key, Values: slices.Compact(values)}
			}
			return requirements.Requirement{Key: key, Values: []string{word(4)}}
		}
		var budgets []PodDisruptionBudget
		for i := range r.IntN(12) {
			b := PodDisruptionBudget{Namespace: "ns-" + word(2), Name: fmt.Sprint(i)}
			if r.IntN(8) > 0 {
				b.Selector = &Selector{}
				for range r.IntN(3) {
					b.Selector.Requirements = append(b.Selector.Requirements, requirement())
				}
			}
			budgets = append(budgets, b)
		}
		x := IndexPodBudgets(budgets)
		for range 20 {
			p := &Pod{Namespace: "ns-" + word(3), Labels: map[string]string{}}
			for range r.IntN(4) {
				p.Labels["key-"+word(3)] = word(4)
			}
			var want, got []string
			for _, b := range budgets {
				if b.Namespace == p.Namespace && b.Selector.Matches(p.Labels) {
					want = append(want, b.Name)
				}
			}
			for _, b := range x.Selecting(p) {
				got = append(got, b.Name)
			}
			slices.Sort(want)
			slices.Sort(got)
			if found += len(want); !slices.Equal(want, got) {
				t.Fatalf("seed %d, %v in %s: %v, want %v of %+v", seed, p.Labels, p.Namespace, got, want, budgets)
			}
		}
	}
	if found < 500 {
		t.Errorf("%d budgets select a pod: too few to test anything", found)
	}
}
