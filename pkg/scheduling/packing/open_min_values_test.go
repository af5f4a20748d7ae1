package packing

import (
	"testing"

	"joiner.sh/pkg/testing/scenario"
)

// A new node that takes all that its pool's limits leave counts once while pods join it: they are no reason for
// another.
func TestPodsJoinANodeAtTheLimitOfItsPool(t *testing.T) {
	for _, limit := range []string{"limit cpu 4000", "limit nodes 1"} {
		world, err := scenario.FromText([]string{"type a.xlarge cpu=4000 mem=16384 milliusd=190",
			"type b.xlarge cpu=4000 mem=16384 milliusd=200", "pool default\nrequire type Exists min=2\n" + limit,
			"pods first cpu=3000 mem=6000", "pods second cpu=500 mem=4000"})
		if err != nil {
			t.Fatal(err)
		}
		w := NewProblem(world.Snapshot, world.Market)
		a := w.NewSolution(Strategy{})
		batches := newPacking(a, &lessons{}).divideIntoBatches(w.Classes.List)
		if len(batches) != 2 || batches[0].View.Class.Pods[0] != "default/first-1" {
			t.Fatalf("%d batches", len(batches))
		}
		if n, _ := a.openCopies(w.Catalog.Pools[0].Offerings[0], []BatchTake{{batches[0], 0, 1}}, 1); n != 1 {
			t.Fatalf("%s: %d nodes for the first pod", limit, n)
		}
		if n := a.mostJoining(batches[1], a.Bins[0], 0, 1); n != 1 {
			t.Errorf("%s: %d pods may join the node, want 1", limit, n)
		}
	}
}
