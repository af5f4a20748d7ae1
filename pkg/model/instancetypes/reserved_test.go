package instancetypes_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// reserving is the default class of a region that sells one small type, with reservations.
func reserving(change func(*instancetypes.Facts), list ...instancetypes.Reservation) instancetypes.Type {
	c := small(change)
	class := instancetypes.DefaultClass(c)
	class.Reservations = list
	return instancetypes.ResolveTypes(c, class, nil, noTime)[0]
}

func reservation(id, zone string, remaining int64) instancetypes.Reservation {
	return instancetypes.Reservation{ID: id, Type: "m5.large", Zone: zone, Kind: "default", Remaining: remaining}
}

// Each reservation of a type is an offering of its own, cheaper than all others.
func TestReservedOfferings(t *testing.T) {
	expiring := reservation("cr-4", "a", 3)
	expiring.Kind, expiring.Expiring = "capacity-block", true
	other := reservation("cr-5", "a", 3)
	other.Type = "other.large"
	x := reserving(func(f *instancetypes.Facts) { f.OnDemandUSD = 2 },
		reservation("cr-1", "a", 2), reservation("cr-2", "a", 0), reservation("cr-3", "elsewhere", 2), expiring, other)
	got := map[string]string{}
	for _, o := range x.Offerings {
		if o.CapacityType != instancetypes.Reserved {
			continue
		}
		got[o.Reservation.ID] = o.Why
		if o.Price != 0.0000002 || o.Available != (o.Why == "") {
			t.Errorf("%s costs %g and is available: %t", o.Reservation.ID, o.Price, o.Available)
		}
	}
	want := map[string]string{
		"cr-1": "", "cr-2": "reservation cr-2 has no room left",
		"cr-3": "reservation cr-3 is in elsewhere, which the region does not have", "cr-4": "reservation cr-4 is about to end",
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("why not (-want +got):\n%s", d)
	}
	if first := x.Offerings[0]; first.ZoneID != "r-1" || first.Reservation == nil || first.Reservation.ID != "cr-1" || first.Reservation.Remaining != 2 {
		t.Errorf("the first offering is %+v, want that of cr-1", first)
	}
}

// What keeps a type or a zone from the class keeps its reservations too.
func TestAReservationThatTheClassCannotUse(t *testing.T) {
	why := func(change func(*instancetypes.Class)) string {
		c := small(nil)
		class := instancetypes.DefaultClass(c)
		class.Reservations = []instancetypes.Reservation{reservation("cr-1", "a", 2)}
		change(&class)
		for _, o := range instancetypes.ResolveTypes(c, class, nil, noTime)[0].Offerings {
			if o.CapacityType == instancetypes.Reserved && !o.Available {
				return o.Why
			}
		}
		return ""
	}
	none := int64(0)
	for want, change := range map[string]func(*instancetypes.Class){
		"": func(*instancetypes.Class) {},
		"it is not known to do nested virtualization, which cpuOptions asks for": func(c *instancetypes.Class) { c.NestedVirtualization = true },
		"the class has no subnet in a":                                           func(c *instancetypes.Class) { c.ZoneIDs = map[string]string{"b": "r-2"} },
		"no subnet of the class in a has a free address":                         func(c *instancetypes.Class) { c.Subnets = []instancetypes.Subnet{{ID: "s", Zone: "a", Free: &none}} },
	} {
		if got := why(change); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A reserved instance can be had although nobody knows what the type costs.
func TestReservedWithoutAPrice(t *testing.T) {
	x := reserving(func(f *instancetypes.Facts) { f.OnDemandUSD, f.SpotUSD = 0, nil }, reservation("cr-1", "a", 1))
	if o := x.Offerings[0]; o.CapacityType != instancetypes.Reserved || !o.Available || o.Price != 0 {
		t.Errorf("first offering %+v", o)
	}
}

func TestReservedLabels(t *testing.T) {
	block := reservation("cr-2", "a", 1)
	block.Kind, block.Interruptible = "capacity-block", true
	x := reserving(func(*instancetypes.Facts) {}, block, reservation("cr-1", "a", 0))
	for key, want := range map[string][]string{
		instancetypes.LabelCapacityType:  {"on-demand", "reserved", "spot"},
		instancetypes.LabelReservationID: {"cr-1", "cr-2"},
		instancetypes.LabelReservation:   {"capacity-block", "default"},
		instancetypes.LabelInterruptible: {"false", "true"},
	} {
		if r, _ := x.Requirements.Get(key); !cmp.Equal(r.Values, want) || r.Not {
			t.Errorf("%s: %v, want %v", key, r, want)
		}
	}
}

func TestOfferingMeets(t *testing.T) {
	spot := instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Zone: "a"}, ZoneID: "z1"}
	block := instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Reserved, Zone: "a"}, Reservation: &instancetypes.Reservation{ID: "cr-1", Kind: "capacity-block"}}
	for _, c := range []struct {
		o    instancetypes.Offering
		r    requirements.Requirement
		want bool
	}{
		{spot, requirements.Of(instancetypes.LabelZone, "a", "b"), true},
		{spot, requirements.Of(instancetypes.LabelZone, "b"), false},
		{spot, requirements.Of(instancetypes.LabelZoneID, "z1"), true},
		{block, requirements.Of(instancetypes.LabelZoneID, "z1"), false},
		{spot, requirements.Of(instancetypes.LabelCapacityType, "reserved"), false},
		{spot, requirements.Of(instancetypes.LabelType, "any"), true},
		{spot, requirements.None(instancetypes.LabelReservationID), true},
		{spot, requirements.Any(instancetypes.LabelReservationID), false},
		{block, requirements.None(instancetypes.LabelReservationID), false},
		{block, requirements.Of(instancetypes.LabelReservationID, "cr-1"), true},
		{block, requirements.Of(instancetypes.LabelReservation, "capacity-block"), true},
		{block, requirements.Of(instancetypes.LabelInterruptible, "true"), false},
		{block, requirements.Of(instancetypes.LabelInterruptible, "false"), true},
	} {
		if got := c.o.Meets(requirements.NewSet(c.r)); got != c.want {
			t.Errorf("%s meets %s: %t", c.o.OfferingKey, c.r, got)
		}
	}
}
