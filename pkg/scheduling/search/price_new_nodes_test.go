package search

import (
	"math"
	"testing"

	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/scenario"
)

// Large nodes are the cheapest for each pod, but the few pods that need new nodes fill none: what they cost at least is
// the price of small nodes for them. Nodes that are there hold two of six pods.
func TestFewPodsNeedSmallNodes(t *testing.T) {
	t.Parallel()
	world, err := scenario.FromText([]string{"type large cpu=32000 mem=65536 milliusd=400",
		"type small cpu=2000 mem=65536 milliusd=100", "pool default", "node n1 type=small zone=a pool=default",
		"node n2 type=small zone=a pool=default", "pods web n=6 cpu=1500 mem=1024"})
	if err != nil {
		t.Fatal(err)
	}
	w := packing.NewProblem(world.Snapshot, world.Market)
	a, st := placeMostPods(w)
	before := st.pricing.LowerBound(a)
	px, _ := (&hostFillSearch{w: w, prices: st.pricing}).raisePrices(a, 50*millisecond)
	if got := px.LowerBound(a); before > 0.3 || math.Abs(got-0.4) > 1e-3 {
		t.Errorf("the bound is %.4f, %.4f before; four pods cost 0.4 wherever they are", got, before)
	}
	if parts := px.Raised.Parts; len(parts) != 1 || parts[0].Count != 4 || parts[0].Hosted != 2 {
		t.Errorf("the parts that need new nodes are %+v, want four of six pods", parts)
	}
}
