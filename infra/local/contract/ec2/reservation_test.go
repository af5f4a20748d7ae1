package ec2_test

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// reserved asks for the type in the reservation, which is in zone a.
func (r *rig) reserved(id, market, kind string) launch.Order {
	o := r.order(instancetypes.Reserved, kind)
	o.Market = market
	o.Templates[0].Name += "-" + id
	o.Templates[0].Reservation = launch.ReservationSelection{Preference: "capacity-reservations-only", ID: id, Market: market}
	o.Templates[0].Overrides = o.Templates[0].Overrides[:1]
	return o
}

func TestALaunchIntoAReservationOfEachKind(t *testing.T) {
	for market, booked := range map[string]awsemulator.Reservation{
		"":                                   {Open: true},
		"capacity-block":                     {Block: true, Ends: time.Now().Add(24 * time.Hour)},
		"interruptible-capacity-reservation": {Interruptible: true},
	} {
		t.Run("market "+market, func(t *testing.T) {
			r := start(t, 1)
			booked.Type, booked.Zone, booked.Count = "m5.large", "us-west-2a", 1
			id := r.ReserveCapacity(booked)
			o := r.reserved(id, market, "m5.large")
			got, _, err := r.LaunchInstances(t.Context(), o, token)
			if err != nil {
				t.Fatal(err)
			}
			if got.CapacityType != instancetypes.Reserved || got.Reservation != id {
				t.Errorf("launched %+v", got)
			}
			// Seen again, or adopted, it is still what it is.
			seen, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{})
			if err != nil || len(seen) != 1 || seen[0].CapacityType != instancetypes.Reserved || seen[0].Reservation != id {
				t.Errorf("seen as %+v, %v", seen, err)
			}
			// A full reservation says nothing about others of the same type in the same zone.
			_, _, err = r.LaunchInstances(t.Context(), o, claimUID+"-1")
			want := []string{"reserved m5.large us-west-2a " + id + " ReservationCapacityExceeded"}
			if d := cmp.Diff(want, scoped(t, err)); d != "" {
				t.Errorf("refused (-want +got):\n%s", d)
			}
			r.count(t, 1)
		})
	}
}

func scoped(t *testing.T, err error) []string {
	t.Helper()
	no, ok := errors.AsType[*instancetypes.NoCapacityError](err)
	if !ok {
		t.Fatalf("error is %v, want a NoCapacityError", err)
	}
	var out []string
	for _, m := range no.Unavailable {
		out = append(out, m.CapacityType+" "+m.Type+" "+m.Zone+" "+m.Scope+" "+m.Why)
	}
	return out
}

// Open reservations may be somebody else's: an ordinary launch leaves them alone.
func TestAnOpenReservationIsNotUsedUpByOthers(t *testing.T) {
	r := start(t, 1)
	r.ReserveCapacity(awsemulator.Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 5, Open: true})
	r.launch(t, r.order(instancetypes.OnDemand, "m5.large"), token)
	if i := r.Cloud.DescribedInstances()[0]; i.Reservation != "" {
		t.Errorf("the instance is in reservation %s", i.Reservation)
	}
	o := r.order(instancetypes.OnDemand, "m5.large") // the account does model it
	o.Templates[0].Name, o.Templates[0].Reservation.Preference = "joiner/demo/2", "open"
	r.launch(t, o, claimUID+"-1")
	if i := r.Cloud.DescribedInstances()[1]; i.Reservation == "" {
		t.Error("an instance that may use open reservations is in none")
	}
	seen, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{})
	if err != nil || len(seen) != 2 || seen[0].CapacityType != instancetypes.OnDemand || seen[1].CapacityType != instancetypes.OnDemand {
		t.Errorf("by chance in a reservation is still on-demand: %+v, %v", seen, err)
	}
}

// What was reserved goes on as on-demand when the reservation is cancelled.
func TestAnInstanceOutlivesItsReservation(t *testing.T) {
	r := start(t, 1)
	id := r.ReserveCapacity(awsemulator.Reservation{Type: "m5.large", Zone: "us-west-2a", Count: 1})
	r.launch(t, r.reserved(id, "", "m5.large"), token)
	r.CancelReservation(id)
	seen, err := r.Fleet.ListInstances(t.Context(), cluster.InstanceFilter{})
	if err != nil || len(seen) != 1 || seen[0].CapacityType != instancetypes.OnDemand || seen[0].Reservation != "" {
		t.Errorf("seen as %+v, %v", seen, err)
	}
}
