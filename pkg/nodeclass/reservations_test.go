package nodeclass_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclass"
)

// Of the reservations that were found, those of an unknown kind and those that have ended are left out, each by itself;
// a block is about to end from forty minutes before.
func TestReservationsOfAClass(t *testing.T) {
	c, resolved := class(), found()
	add := func(id, criteria, kind string, left time.Duration) {
		r := awsv1.CapacityReservation{ID: id, InstanceMatchCriteria: criteria, ReservationType: awsv1.CapacityReservationType(kind)}
		if left != 0 {
			r.EndTime = &metav1.Time{Time: noon().Add(left)}
		}
		resolved.Reservations = append(resolved.Reservations, r)
	}
	add("cr-9", "new", "default", 0)
	add("cr-8", "open", "new", 0)
	add("cr-7", "targeted", "default", -time.Second)
	add("cr-6", "targeted", "default", 0)
	add("cr-5", "open", "default", time.Minute)
	add("cr-4", "targeted", "capacity-block", 40*time.Minute+time.Second)
	add("cr-3", "targeted", "capacity-block", 40*time.Minute)
	nodeclass.UpdateStatus(c, resolved, noon())
	var got []string
	for _, r := range c.Status.CapacityReservations {
		got = append(got, fmt.Sprint(r.ID, " ", r.State))
	}
	if diff := cmp.Diff([]string{"cr-3 expiring", "cr-4 active", "cr-5 active", "cr-6 active"}, got); diff != "" {
		t.Errorf("reservations (-want +got):\n%s", diff)
	}
}
