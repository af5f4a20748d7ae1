package prices

import "testing"

// The more kinds of pods there are, the fewer sorts of nodes prices reckon with.
func TestFewerSortsOfNodesBesideManyKindsOfPods(t *testing.T) {
	for kinds, want := range map[int]int{10: 100, 250: 100, 300: 50, 325: 25, 1000: 25} {
		if got := mostHostSorts(kinds); got != want {
			t.Errorf("%d kinds of pods: %d sorts of nodes, want %d", kinds, got, want)
		}
	}
}
