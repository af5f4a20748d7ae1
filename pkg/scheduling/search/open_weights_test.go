package search_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"joiner.sh/pkg/testing/scenario"
	"joiner.sh/pkg/testing/shortrun"
)

// Every node of a light pool has a pod that no heavier pool could have, also after the search has packed nodes anew;
// pods of heavier pools only take what room it leaves.
func TestOnlyItsOwnPodsOpenALightPool(t *testing.T) {
	t.Parallel()
	guests := 0
	n := shortrun.Of(80, 20)
	for seed := range uint64(n) {
		r := rand.New(rand.NewPCG(seed, 5))
		script := []string{"pool heavy weight=7\nrequire capacity In on-demand", "pool light"}
		for i, cpu := range []int{2, 4, 8, 16} {
			script = append(script, fmt.Sprintf("type t%d cpu=%d000 mem=%d milliusd=%d spot=%d", i, cpu, cpu*4096, cpu*48, cpu*(14+i)))
		}
		for i := range 3 {
			script = append(script, fmt.Sprintf("pods own%d n=%d cpu=%d mem=100\nselect capacity=spot", i, 4+r.IntN(8), 500+r.IntN(40)*100),
				fmt.Sprintf("pods any%d n=%d cpu=%d mem=100", i, 4+r.IntN(8), 100+r.IntN(20)*100))
		}
		w, err := scenario.FromText(script)
		if err != nil {
			t.Fatal(err)
		}
		p := decide(w)
		for _, fault := range w.Check(p) {
			t.Errorf("seed %d: %s", seed, fault)
		}
		for _, l := range p.Launches {
			if names := strings.Join(l.Pods, ","); l.Pool == "light" && strings.Contains(names, "any") {
				guests++
			}
		}
	}
	if guests < n {
		t.Errorf("guests on %d nodes of %d worlds test nothing", guests, n)
	}
}
