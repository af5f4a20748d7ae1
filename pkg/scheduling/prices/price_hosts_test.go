package prices

import (
	"math"
	"testing"

	"joiner.sh/pkg/scheduling/capacity"
)

// Nodes are alike that admit the same pods and whose rooms are between the same powers of the factor; beyond all rooms
// only what they admit tells them apart.
func TestNodesThatAreAlike(t *testing.T) {
	bin := func(room int64) *capacity.Bin { return &capacity.Bin{Room: []int64{room}} }
	hosts, admitted := []*capacity.Bin{bin(2), bin(3), bin(5), bin(3)}, []string{"1", "1", "1", "0"}
	h := hostOfferings{out: &ShadowPrices{Units: []float64{1}}}
	for factor, want := range map[float64]int{1.5: 4, 2: 3, 16: 2, math.Inf(1): 2} {
		sorts := h.alikeHosts(hosts, admitted, factor)
		if len(sorts) != want {
			t.Errorf("factor %v: %d sorts of nodes, want %d", factor, len(sorts), want)
		}
		nodes, room := 0.0, 0.0
		for _, o := range sorts {
			nodes, room = nodes+o.Limit, room+o.Limit*o.Room[0]
		}
		if math.Abs(nodes-4) > 1e-9 || math.Abs(room-13) > 1e-9 {
			t.Errorf("factor %v: %v nodes with %v of room, want 4 and 13", factor, nodes, room)
		}
	}
}
