package instancetypes

import (
	"math"
	"testing"

	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/spotpools"
)

func TestInterruptionsArePartOfTheComparedPriceAndOfNoBill(t *testing.T) {
	types := func() []Type {
		return []Type{{Name: "c6a.large", Allocatable: resources.List{CPU: 2000, Memory: 4 << 30}, MaxPods: 29, Offerings: []Offering{
			{Offer: Offer{Spot, "c6a.large", "b"}, Price: 0.03, NodeUSD: 0.002, Available: true},
			{Offer: Offer{Spot, "c6a.large", "a"}, Price: 0.031, NodeUSD: 0.002, Available: true},
			{Offer: Offer{OnDemand, "c6a.large", "a"}, Price: 0.08, Available: true},
			{Offer: Offer{Spot, "c6a.large", "c"}, Why: spotPriceUnknown},
		}}}
	}
	bad := spotpools.Cell{Pool: spotpools.Pool{Type: "c6a.large", Zone: "b"}, Evidence: spotpools.Evidence{Hours: 1e6, Interruptions: 1e4}}
	safe := spotpools.Cell{Pool: spotpools.Pool{Type: "c6a.large", Zone: "a"}, Evidence: spotpools.Evidence{Hours: 1e6}}
	c := Catalog{Spot: &spotpools.Summary{Own: []spotpools.Cell{safe, bad}}}
	cost := InterruptionCost{PodUSD: 0.05, Pod: resources.List{CPU: 500, Memory: 128 << 20}}
	got := c.AddInterruptionCosts(types(), cost)[0].Offerings
	if got[0].Zone != "a" || got[1].Zone != "b" {
		t.Fatalf("the cheapest is %v, want the pool that is not interrupted", got[0])
	}
	if math.Abs(got[1].RiskUSD-0.01*0.05*4) > 1e-5 || math.Abs(got[1].BilledUSD()-0.03) > 1e-12 || math.Abs(got[1].InstanceUSD()-0.028) > 1e-12 {
		t.Errorf("4 pods, one interruption in 100 node hours: %+v", got[1])
	}
	for _, o := range got[2:] {
		if o.CapacityType == OnDemand && (o.RiskUSD != 0 || o.Price != 0.08) || o.Zone == "c" && (o.Price != 0 || o.RiskUSD <= 0) {
			t.Errorf("%+v", o)
		}
	}
	if p := got[1].AtPrice(0.02); math.Abs(p.BilledUSD()-0.022) > 1e-12 || p.RiskUSD != got[1].RiskUSD {
		t.Errorf("at an overlay's price: %+v", p)
	}
	for _, o := range (Catalog{}).AddInterruptionCosts(types(), cost)[0].Offerings {
		if o.RiskUSD != 0 || o.Hazard != 0 {
			t.Errorf("without a record: %+v", o)
		}
	}
	for _, o := range c.AddInterruptionCosts(types(), InterruptionCost{})[0].Offerings {
		if o.RiskUSD != 0 || o.Hazard != 0 {
			t.Errorf("while it is off: %+v", o)
		}
	}
}
