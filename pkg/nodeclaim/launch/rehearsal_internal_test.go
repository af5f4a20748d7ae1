package launch

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
)

// A type that is to be had neither on demand nor at all is none to rehearse with, and reserved offerings say that a
// class can be launched with.
func TestTypesToRehearseWith(t *testing.T) {
	offering := func(kind string, available bool, why string, r *instancetypes.Reservation) instancetypes.Offering {
		return instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: kind}, Price: 1, Available: available, Why: why, Reservation: r}
	}
	for want, o := range map[float64]instancetypes.Offering{1: offering(instancetypes.OnDemand, true, "", nil), 0: offering(instancetypes.OnDemand, false, "no AMI", nil)} {
		if got := rehearsalPrice(&instancetypes.Type{Offerings: []instancetypes.Offering{o}}); got != want {
			t.Errorf("%+v costs %g, want %g", o, got, want)
		}
	}
	if got := rehearsalPrice(&instancetypes.Type{Offerings: []instancetypes.Offering{offering(instancetypes.Spot, true, "", nil)}}); got != 0 {
		t.Errorf("on demand what is spot only costs %g", got)
	}
	full := offering(instancetypes.Reserved, false, "the reservation is full", &instancetypes.Reservation{ID: "cr-1"})
	none := offering(instancetypes.OnDemand, false, "no AMI", nil)
	if got := UnusableReason([]instancetypes.Type{{Offerings: []instancetypes.Offering{none}}}); got != "no AMI (1 types)" {
		t.Errorf("without anything to be had: %q", got)
	}
	if got := UnusableReason([]instancetypes.Type{{Offerings: []instancetypes.Offering{full, none}}}); got != "" {
		t.Errorf("with a reservation: %q", got)
	}
}
