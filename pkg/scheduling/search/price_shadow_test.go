package search

import (
	"math"
	"slices"
	"testing"

	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/scenario"
)

// Once nodes that are there are full, what is left is priced as if there had been none, with fills found for it alone.
func TestPricesOfWhatHostsLeave(t *testing.T) {
	t.Parallel()
	world, err := scenario.FromText([]string{"type both cpu=16000 mem=65536 milliusd=400", "type memory cpu=2000 mem=65536 milliusd=250",
		"pool default", "node n1 type=both zone=a pool=default", "node n2 type=both zone=a pool=default",
		"pods a n=25 cpu=3000 mem=1024", "pods b n=25 cpu=100 mem=12000", "pods c n=20 cpu=1500 mem=7000"})
	if err != nil {
		t.Fatal(err)
	}
	w := packing.NewProblem(world.Snapshot, world.Market)
	_, st := placeMostPods(w)
	x := st.pricing.Worth
	left := make([]float64, len(x.Problem.Classes))
	alone := lowerbound.CoverProblem{Classes: slices.Clone(x.Problem.Classes), Caps: x.Problem.Caps, Rounds: 50}
	for _, o := range x.Problem.Offers {
		if o.Limit == 0 {
			alone.Offers = append(alone.Offers, o)
		}
	}
	if len(alone.Offers) == len(x.Problem.Offers) {
		t.Fatal("no offer of the problem is a node that is there")
	}
	for i := range left {
		left[i] = float64(3 + 4*i)
		alone.Classes[i].Count = left[i]
	}
	want, got, sums := lowerbound.NewSolver(alone).Solve().Value, x.Reprice(left, 0), [2]float64{}
	for i, n := range left {
		sums[0], sums[1] = sums[0]+n*got.USD[i], sums[1]+n*want[i]
	}
	if math.Abs(sums[0]-sums[1]) > 1e-3*sums[1] {
		t.Errorf("what is left is worth %.5f at %v; without hosts it costs %.5f at %v", sums[0], got, sums[1], want)
	}
	if with := x.Reprice(left, 1); with.USD[0]*left[0] >= got.USD[0]*left[0]+1e-9 {
		t.Errorf("with empty hosts pods are worth %v, without %v", with, got)
	}
}
