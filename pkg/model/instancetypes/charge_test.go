package instancetypes_test

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
)

func TestCharge(t *testing.T) {
	c := instancetypes.Catalog{Types: []instancetypes.Facts{{Name: "free"}, {Name: "m5.large", OnDemandUSD: 0.096, SpotUSD: map[string]float64{"a": 0.04}}}}
	for o, want := range map[instancetypes.OfferingKey]struct {
		usd   float64
		known bool
	}{
		{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "a"}: {0.096, true},
		{CapacityType: instancetypes.Spot, Type: "m5.large", Zone: "a"}:     {0.04, true},
		{CapacityType: instancetypes.Spot, Type: "m5.large", Zone: "b"}:     {0.096, true},
		{CapacityType: instancetypes.Reserved, Type: "m5.large", Zone: "a"}: {0, true},
		{CapacityType: instancetypes.Reserved, Type: "none", Zone: "a"}:     {0, false},
		{CapacityType: instancetypes.OnDemand, Type: "none", Zone: "a"}:     {0, false},
		{CapacityType: instancetypes.OnDemand, Type: "free", Zone: "a"}:     {0, false},
	} {
		if usd, known := c.Charge(o); usd != want.usd || known != want.known {
			t.Errorf("%s: %v %t, want %v", o, usd, known, want)
		}
	}
}
