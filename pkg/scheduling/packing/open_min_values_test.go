package packing

import (
	"fmt"
	"slices"
	"testing"

	"joiner.sh/pkg/scheduling/capacity"
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
		p := NewProblem(world.Snapshot, world.Market)
		s := p.NewSolution(Strategy{})
		batches := newPacking(s, &lessons{}).divideIntoBatches(p.Classes.List)
		if len(batches) != 2 || batches[0].View.Class.Pods[0] != "default/first-1" {
			t.Fatalf("%d batches", len(batches))
		}
		if n, _ := s.openCopies(p.Catalog.Pools[0].Offerings[0], []BatchTake{{batches[0], 0, 1}}, 1); n != 1 {
			t.Fatalf("%s: %d nodes for the first pod", limit, n)
		}
		if n := s.mostJoining(batches[1], s.Bins[0], 0, 1); n != 1 {
			t.Errorf("%s: %d pods may join the node, want 1", limit, n)
		}
	}
}

// A pod that leaves too few types joins no node that MinValues keep small; one that leaves enough does.
func TestLaterPodsLeaveEnoughTypes(t *testing.T) {
	world, err := scenario.FromText([]string{"type a.xlarge cpu=4000 mem=16384 milliusd=190",
		"type b.xlarge cpu=4000 mem=16384 milliusd=200", "pool default\nrequire type Exists min=2",
		"pods first cpu=1000 mem=1000", "pods any cpu=500 mem=500", "pods picky cpu=200 mem=200\nselect type=a.xlarge"})
	if err != nil {
		t.Fatal(err)
	}
	p := NewProblem(world.Snapshot, world.Market)
	s := p.NewSolution(Strategy{})
	take := map[string]BatchTake{}
	for _, batch := range newPacking(s, &lessons{}).divideIntoBatches(p.Classes.List) {
		take[batch.View.Class.Pods[0]] = BatchTake{batch, 0, 1}
	}
	o := p.Catalog.Pools[0].Offerings[0]
	m := minValuesFit{s, o, s.Used.Pools[o.InstanceType.Pool.ID]}
	first, other := take["default/first-1"], take["default/any-1"]
	got := m.withLater([]BatchTake{first}, []BatchTake{take["default/picky-1"], other}, o.InstanceType.Type.Capacity, nil)
	if len(take) != 3 || len(got) != 2 || got[0].Batch != first.Batch || got[1].Batch != other.Batch {
		t.Errorf("of %d batches a node takes %d", len(take), len(got))
	}
}

// Types that a launch need not name are left out, but not where all are asked for, in whatever order that is asked.
func TestAllTypesAreListedWhereAsked(t *testing.T) {
	lines := []string{"pool default", "pods first cpu=1000 mem=1000"}
	for i := range 200 {
		lines = append(lines, fmt.Sprintf("type t%d.xlarge cpu=4000 mem=16384 milliusd=%d", i, 100+i))
	}
	world, err := scenario.FromText(lines)
	if err != nil {
		t.Fatal(err)
	}
	problem := NewProblem(world.Snapshot, world.Market)
	s := problem.NewSolution(Strategy{})
	p := problem.Catalog.Pools[0]
	m := minValuesFit{s, p.Offerings[0], capacity.PoolUsage{}}
	loads := m.asLoads([]BatchTake{{newPacking(s, &lessons{}).divideIntoBatches(problem.Classes.List)[0], 0, 1}})
	var counts []int
	for _, all := range []bool{false, true, true, false} {
		opts, _ := problem.Options.LaunchOptions(p, capacity.PoolUsage{}, loads, all)
		counts = append(counts, len(opts))
	}
	if few := counts[0]; few == 0 || few >= 200 || !slices.Equal(counts, []int{few, 200, 200, few}) {
		t.Errorf("types listed: %d", counts)
	}
}
