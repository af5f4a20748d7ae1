package cluster

import "testing"

// Devices that others have on a node which starts are not there for pods, whatever its type has.
func TestDevicesOfANodeThatStarts(t *testing.T) {
	const name = "pcie-bundle.joiner.sh/2_gpu.nvidia.com"
	for _, c := range []struct{ capacity, allocatable, want int64 }{{0, 0, 8}, {8, 0, 0}, {8, 3, 3}} {
		n := Node{Name: "n", ProviderID: "id"}
		n.Capacity, n.Allocatable = n.Capacity.With(name, c.capacity), n.Allocatable.With(name, c.allocatable)
		h := StateNode{Node: &n, Claim: &Claim{ProviderID: "id"}}
		h.Claim.Allocatable = h.Claim.Allocatable.With(name, 8)
		if got := h.Allocatable().Get(name); got != c.want {
			t.Errorf("of %d the node has %d for pods: %d counts, want %d", c.capacity, c.allocatable, got, c.want)
		}
	}
}
