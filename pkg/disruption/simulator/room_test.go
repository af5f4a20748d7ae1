package simulator

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// plainEmptiest is emptiestNode that looks at every node.
func plainEmptiest(sim *Simulator, class *podClass) (out *Node) {
	for _, n := range sim.nodes {
		if n.gone || n.held || !nodeAdmits(n, class.pod) || !class.pod.Need.FitsIn(n.free) || !sim.rulesOf(class).allowsNode(n) {
			continue
		}
		if out == nil || n.freeShare(class.pod.Need) > out.freeShare(class.pod.Need) {
			out = n
		}
	}
	return out
}

// TestEmptiestNode plays random histories of nodes and pods that come, go, are held and are taken back, and compares
// the search by blocks with one that looks at every node.
func TestEmptiestNode(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 7))
		sim := New(cluster.Snapshot{}, nil)
		sizes := []resources.List{{CPU: 4000, Memory: 8 << 30, Pods: 20}, {CPU: 2000, Memory: 16 << 30, Pods: 20}}
		added := 0
		addNode := func() {
			all := sizes[r.IntN(len(sizes))]
			labels := map[string]string{"zone": string("abc"[r.IntN(3)])}
			sim.AddNode(NewNode(fmt.Sprintf("n%03d", added), labels, nil, all, all))
			added++
		}
		for range 100 + r.IntN(200) {
			addNode()
		}
		newPod := func(i int) *cluster.Pod {
			p := &cluster.Pod{Namespace: "default", Name: fmt.Sprintf("p%d", i), Phase: "Running",
				Need: resources.List{CPU: 100 * int64(1+r.IntN(15)), Memory: int64(r.IntN(4)) << 30, Pods: 1}}
			if r.IntN(3) == 0 {
				p.NodeSelector = map[string]string{"zone": string("abcd"[r.IntN(4)])}
			}
			return p
		}
		var marks []int
		for i := range 1500 {
			switch n := sim.nodes[r.IntN(len(sim.nodes))]; r.IntN(12) {
			case 0:
				sim.RemoveNode(n.name, nil)
			case 1:
				n.SetHeld(!n.held)
			case 2:
				marks = append(marks, sim.Mark())
			case 3:
				if len(marks) > 0 && r.IntN(3) == 0 {
					sim.UndoTo(marks[len(marks)-1])
					marks = marks[:len(marks)-1]
				}
			case 4:
				addNode()
			case 5:
				mark := sim.Mark()
				sim.RemoveNode(n.name, nil)
				sim.Bind([]*cluster.Pod{newPod(i)}, nil)
				sim.UndoTo(mark)
			default:
				p := newPod(i)
				want := plainEmptiest(sim, sim.classOf(p))
				left := sim.Bind([]*cluster.Pod{p}, nil)
				switch {
				case want == nil && len(left) == 0, want != nil && (len(left) > 0 || sim.LastPlaced() != want.name):
					t.Fatalf("seed %d, pod %d of %v: bound to %q (%d without a node), want %v", seed, i, p.Need,
						sim.LastPlaced(), len(left), want)
				}
			}
		}
	}
}

// A pod goes to no node that is without what it requires, however empty, and to a new one that has it.
func TestNodesHaveWhatPodsRequire(t *testing.T) {
	room := resources.List{CPU: 4000, Memory: 8 << 30, Pods: 20}
	s := cluster.Snapshot{Nodes: []cluster.Node{{Name: "full", Ready: true, Provides: []string{"feature F"}, Allocatable: resources.List{CPU: 500, Pods: 20}},
		{Name: "empty", Ready: true, Allocatable: room}}}
	sim := New(s, nil)
	lacking := NewNode("lacking", nil, nil, room, room)
	lacking.SetProvided(func(string) bool { return false })
	sim.AddNode(lacking)
	pod := func(name string) *cluster.Pod {
		return &cluster.Pod{Namespace: "default", Name: name, Phase: "Running", Requires: []string{"feature F"}, Need: resources.List{CPU: 400, Pods: 1}}
	}
	if left := sim.Bind([]*cluster.Pod{pod("a")}, nil); len(left) > 0 || sim.LastPlaced() != "full" {
		t.Errorf("the first pod is on %q", sim.LastPlaced())
	}
	if left := sim.Bind([]*cluster.Pod{pod("b")}, nil); len(left) != 1 {
		t.Errorf("the second pod is on %q", sim.LastPlaced())
	}
	sim.AddNode(NewNode("new", nil, nil, room, room))
	if left := sim.Bind([]*cluster.Pod{pod("b")}, nil); len(left) > 0 || sim.LastPlaced() != "new" {
		t.Errorf("the second pod is on %q, want new", sim.LastPlaced())
	}
}
