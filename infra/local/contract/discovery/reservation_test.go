package discovery

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/providers/discovery"
)

// The terms are ORed, the conditions of a term ANDed; an id beats the rest of its term, and one that does not exist
// finds nothing.
func TestCapacityReservationsOfAClass(t *testing.T) {
	r := start(t)
	soon, later := r.now.Add(30*time.Minute), r.now.Add(2*time.Hour)
	for id, x := range map[string]awsemulator.Reservation{
		"cr-a": {Open: true, Tags: map[string]string{"team": "a"}}, "cr-b": {Tags: map[string]string{"team": "a"}},
		"cr-c": {Tags: map[string]string{"team": "b"}, Interruptible: true}, "cr-gone": {Tags: map[string]string{"team": "a"}},
		"cr-soon": {Block: true, Ends: soon}, "cr-later": {Block: true, Ends: later}, "cr-over": {Ends: r.now.Add(-time.Second)},
	} {
		x.ID, x.Type, x.Zone, x.Count = id, "m5.large", "us-west-2a", 2
		r.ReserveCapacity(x)
	}
	r.CancelReservation("cr-gone")
	for name, c := range map[string]struct {
		terms []awsv1.CapacityReservationSelectorTerm
		want  string
	}{
		"none":          {nil, ""},
		"tag":           {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}}}, "cr-a cr-b"},
		"any tag":       {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "*"}}}, "cr-a cr-b cr-c"},
		"tag and match": {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}, InstanceMatchCriteria: "open"}}, "cr-a"},
		"other owner":   {[]awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{"team": "a"}, OwnerID: "999999999999"}}, ""},
		"own":           {[]awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "open", OwnerID: "111122223333"}}, "cr-a"},
		"ids":           {[]awsv1.CapacityReservationSelectorTerm{{ID: "cr-c"}, {ID: "cr-none"}, {ID: "cr-gone"}, {ID: "cr-over"}, {ID: "cr-a"}}, "cr-a cr-c"},
		"id or tag":     {[]awsv1.CapacityReservationSelectorTerm{{ID: "cr-soon"}, {Tags: map[string]string{"team": "b"}}}, "cr-c cr-soon"},
	} {
		k := class()
		k.Spec.CapacityReservationSelectorTerms = c.terms
		if err := r.look(t, k); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		var got []string
		for _, x := range k.Status.CapacityReservations {
			got = append(got, x.ID)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s finds %v, want %s", name, got, c.want)
		}
		if got := condition(k, awsv1.ConditionCapacityReservationsReady); !strings.HasPrefix(got, "True") {
			t.Errorf("%s: %s", name, got)
		}
	}

	k := class()
	k.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{ID: "cr-soon"}, {ID: "cr-later"}, {ID: "cr-c"}}
	if err := r.look(t, k); err != nil {
		t.Fatal(err)
	}
	want := []awsv1.CapacityReservation{
		{ID: "cr-c", InstanceMatchCriteria: "targeted", Interruptible: true, ReservationType: "default", State: "active"},
		{ID: "cr-later", InstanceMatchCriteria: "targeted", ReservationType: "capacity-block", State: "active"},
		{ID: "cr-soon", InstanceMatchCriteria: "targeted", ReservationType: "capacity-block", State: "expiring"},
	}
	got := k.Status.CapacityReservations
	for i := range want {
		want[i].InstanceType, want[i].AvailabilityZone, want[i].OwnerID = "m5.large", "us-west-2a", "111122223333"
		if i < len(got) {
			want[i].EndTime = got[i].EndTime
		}
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("status (-want +got):\n%s", d)
	}
	if got[1].EndTime.Unix() != later.Unix() || got[0].EndTime != nil {
		t.Errorf("ends %v and %v", got[0].EndTime, got[1].EndTime)
	}

	// What cannot be read leaves the status as it is.
	r.AddFault(awsemulator.Fault{Service: "ec2", Action: "DescribeCapacityReservations", Kind: awsemulator.FailBefore, Code: "UnauthorizedOperation"})
	if err := r.look(t, k); err == nil || len(k.Status.CapacityReservations) != 3 {
		t.Errorf("status %v, error %v", k.Status.CapacityReservations, err)
	}
}

// What is left is read for what there is, whatever else was asked for.
func TestLevels(t *testing.T) {
	r := start(t)
	l := discovery.RemainingCapacity{EC2: r.finder.EC2}
	for id, n := range map[string]int{"cr-a": 2, "cr-b": 0, "cr-gone": 3} {
		r.ReserveCapacity(awsemulator.Reservation{ID: id, Type: "m5.large", Zone: "us-west-2a", Count: n})
	}
	r.CancelReservation("cr-gone")
	for _, ids := range [][]string{{"cr-a", "cr-b", "cr-gone"}, {"cr-a", "cr-b", "cr-gone", "cr-none"}} {
		got, err := l.RemainingReservations(t.Context(), ids)
		if d := cmp.Diff(map[string]int64{"cr-a": 2, "cr-b": 0}, got); d != "" || err != nil {
			t.Errorf("%v: %v\n%s", ids, err, d)
		}
	}
	if got, err := l.RemainingReservations(t.Context(), []string{"cr-none"}); err != nil || len(got) > 0 {
		t.Errorf("%v, %v", got, err)
	}
	k := class()
	if err := r.look(t, k); err != nil {
		t.Fatal(err)
	}
	id := k.Status.Subnets[0].ID
	r.LimitAddresses(id, 7)
	if got, err := l.RemainingAddresses(t.Context(), []string{id, "subnet-none"}); err != nil || len(got) != 1 || got[id] != 7 {
		t.Errorf("%v, %v", got, err)
	}
}
