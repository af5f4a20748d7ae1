package instancetypes_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// A zone is out when every subnet of the class there is, for want of addresses or because EC2 said so.
func TestAZoneWithoutAddresses(t *testing.T) {
	n := func(free int64) *int64 { return &free }
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	unavailable := func(subnet string) instancetypes.UnavailableOffering {
		return instancetypes.UnavailableOffering{Scope: subnet, Until: now.Add(time.Minute), Why: "InsufficientFreeAddressesInSubnet"}
	}
	for name, c := range map[string]struct {
		subnets     []instancetypes.Subnet
		unavailable []instancetypes.UnavailableOffering
		want        string
	}{
		"nobody knows":     {nil, nil, ""},
		"nobody counted":   {[]instancetypes.Subnet{{ID: "s-1", Zone: "a"}}, nil, ""},
		"one left":         {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(1)}}, nil, ""},
		"none left":        {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(0)}}, nil, "no subnet of the class in a has a free address"},
		"another has":      {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(0)}, {ID: "s-2", Zone: "a", Free: n(5)}}, nil, ""},
		"another zone has": {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(0)}, {ID: "s-2", Zone: "b", Free: n(5)}}, nil, "no subnet of the class in a has a free address"},
		"refused":          {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(9)}}, []instancetypes.UnavailableOffering{unavailable("s-1")}, "s-1 is unavailable until 2026-01-01T12:01:00Z (InsufficientFreeAddressesInSubnet)"},
		"another refused":  {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(9)}}, []instancetypes.UnavailableOffering{unavailable("s-2")}, ""},
		"one refused, one is full": {[]instancetypes.Subnet{{ID: "s-1", Zone: "a", Free: n(9)}, {ID: "s-2", Zone: "a", Free: n(0)}}, []instancetypes.UnavailableOffering{unavailable("s-1")},
			"no subnet of the class in a has a free address"},
	} {
		k := small(func(*instancetypes.Facts) {})
		class := instancetypes.DefaultClass(k)
		class.Subnets, class.Reservations = c.subnets, []instancetypes.Reservation{reservation("cr-1", "a", 1)}
		for _, o := range instancetypes.ResolveTypes(k, class, c.unavailable, now)[0].Offerings {
			want := ""
			if o.Zone == "a" {
				want = c.want
			}
			if o.Zone == "a" && (o.Why != want || o.Available != (want == "")) {
				t.Errorf("%s: %s is not to be had because %q, want %q", name, o.OfferingKey, o.Why, want)
			}
		}
	}
}
