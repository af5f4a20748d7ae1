package binpack_test

import (
	"math"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/scheduling/binpack"
)

// TestInterruptionsCountWherePlansAreCompared packs the same pods while spot pools are not learned, while they are, and
// while the cheapest is known to be interrupted.
func TestInterruptionsCountWherePlansAreCompared(t *testing.T) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	class := instancetypes.DefaultClass(c)
	s := cluster.Snapshot{Now: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Catalog: c, Classes: []instancetypes.Class{class},
		Pools: []cluster.Pool{{Name: "default", Class: class.Name, Ready: true, Requirements: requirements.Set{}.And(
			requirements.Of("karpenter.sh/capacity-type", "spot"), requirements.Of("karpenter.k8s.aws/instance-family", "m5", "m5a", "m6i", "c5", "c6i", "r5"))}},
		Pods: []cluster.Pod{{Namespace: "d", Name: "one", UID: "1", Unscheduled: true, Owner: cluster.OwnerOther,
			Need: resources.List{CPU: 1500, Memory: 3 << 30, Pods: 1}}}}
	packed := func() plan.Launch {
		t.Helper()
		p := binpack.Pods(s)
		if len(p.Launches) != 1 {
			t.Fatalf("the plan is\n%s", p)
		}
		return p.Launches[0]
	}
	off := packed()
	s.Catalog.Spot = &spotpools.Summary{Own: []spotpools.Cell{{Pool: spotpools.Pool{Type: off.Choice.Type, Zone: off.Choice.Zone},
		Evidence: spotpools.Evidence{Hours: 100, Interruptions: 40}}}}
	if still := packed(); still.String() != off.String() {
		t.Errorf("the setting is off, and the record changes\n%s to\n%s", off, still)
	}
	s.Rules.PodInterruptionCostUSD = 0.05
	on := packed()
	if on.Choice.Offer == off.Choice.Offer || on.Choice.RiskUSD <= 0 {
		t.Errorf("a pool with 40 interruptions in 100 node hours is chosen still: %s", on)
	}
	facts, _ := c.Find(on.Choice.Type)
	if got := on.Choice.InstanceUSD(); math.Abs(got-facts.SpotUSD[on.Choice.Zone]) > 1e-9 {
		t.Errorf("the instance is said to cost %v, EC2 takes %v", got, facts.SpotUSD[on.Choice.Zone])
	}
	p := binpack.Pods(s)
	if want := p.ComparedUSD() - on.Choice.RiskUSD; math.Abs(p.TotalPrice()-want) > 1e-12 || p.LowerBoundUSD > p.ComparedUSD()+1e-9 {
		t.Errorf("the plan costs %v, compared as %v, with a bound of %v", p.TotalPrice(), p.ComparedUSD(), p.LowerBoundUSD)
	}
}
