package binpack

import (
	"math"
	"slices"
	"testing"

	"joiner.sh/pkg/scheduling/lowerbound"
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
	w := newProblem(world.Snapshot, world.Market)
	_, st := placeMostPods(w)
	x := st.pricing.worth
	left := make([]float64, len(x.problem.Classes))
	alone := lowerbound.CoverProblem{Classes: slices.Clone(x.problem.Classes), Caps: x.problem.Caps, Rounds: 50}
	for _, o := range x.problem.Offers {
		if o.Limit == 0 {
			alone.Offers = append(alone.Offers, o)
		}
	}
	if len(alone.Offers) == len(x.problem.Offers) {
		t.Fatal("no offer of the problem is a node that is there")
	}
	for i := range left {
		left[i] = float64(3 + 4*i)
		alone.Classes[i].Count = left[i]
	}
	want, got, sums := lowerbound.NewSolver(alone).Solve().Value, x.reprice(left, 0), [2]float64{}
	for i, n := range left {
		sums[0], sums[1] = sums[0]+n*got.usd[i], sums[1]+n*want[i]
	}
	if math.Abs(sums[0]-sums[1]) > 1e-3*sums[1] {
		t.Errorf("what is left is worth %.5f at %v; without hosts it costs %.5f at %v", sums[0], got, sums[1], want)
	}
	if with := x.reprice(left, 1); with.usd[0]*left[0] >= got.usd[0]*left[0]+1e-9 {
		t.Errorf("with empty hosts pods are worth %v, without %v", with, got)
	}
}
