package catalog_test

import (
	"testing"

	"joiner/pkg/catalog"
)

func TestCharge(t *testing.T) {
	c := catalog.Catalog{Types: []catalog.Facts{{Name: "free"}, {Name: "m5.large", OnDemandUSD: 0.096, SpotUSD: map[string]float64{"a": 0.04}}}}
	for o, want := range map[catalog.Offer]struct {
		usd   float64
		known bool
	}{
		{CapacityType: catalog.OnDemand, Type: "m5.large", Zone: "a"}: {0.096, true},
		{CapacityType: catalog.Spot, Type: "m5.large", Zone: "a"}:     {0.04, true},
		{CapacityType: catalog.Spot, Type: "m5.large", Zone: "b"}:     {0.096, true},
		{CapacityType: catalog.Reserved, Type: "m5.large", Zone: "a"}: {0, true},
		{CapacityType: catalog.Reserved, Type: "none", Zone: "a"}:     {0, false},
		{CapacityType: catalog.OnDemand, Type: "none", Zone: "a"}:     {0, false},
		{CapacityType: catalog.OnDemand, Type: "free", Zone: "a"}:     {0, false},
	} {
		if usd, known := c.Charge(o); usd != want.usd || known != want.known {
			t.Errorf("%s: %v %t, want %v", o, usd, known, want)
		}
	}
}
