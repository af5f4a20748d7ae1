package nodeclass

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// A pool that does not say when it sleeps does so with the whole stack, in the stack's time zone; its budgets stay in
// its own.
func TestPoolsSleepWithTheWholeStack(t *testing.T) {
	stack := map[string]string{v1.AnnotationHibernationSchedule: "0 20 * * *", v1.AnnotationHibernationDuration: "12h", "joiner.sh/time-zone": "Asia/Tokyo"}
	for name, c := range map[string]struct {
		stack, own map[string]string
		want       cluster.Disruption
	}{
		"nobody says":        {want: cluster.Disruption{}},
		"the stack":          {stack: stack, want: cluster.Disruption{SleepAt: "0 20 * * *", SleepFor: 12 * time.Hour, SleepZone: "Asia/Tokyo"}},
		"a zone of its own":  {stack: stack, own: map[string]string{"joiner.sh/time-zone": "Europe/Berlin"}, want: cluster.Disruption{SleepAt: "0 20 * * *", SleepFor: 12 * time.Hour, SleepZone: "Asia/Tokyo", TimeZone: "Europe/Berlin"}},
		"a time of its own":  {stack: stack, own: map[string]string{v1.AnnotationHibernationSchedule: "0 6 * * *", v1.AnnotationHibernationDuration: "1h"}, want: cluster.Disruption{SleepAt: "0 6 * * *", SleepFor: time.Hour}},
		"it never does":      {stack: stack, own: map[string]string{v1.AnnotationHibernationSchedule: "never"}, want: cluster.Disruption{}},
		"no duration":        {stack: map[string]string{v1.AnnotationHibernationSchedule: "0 20 * * *"}, want: cluster.Disruption{ReportOnly: true, Message: "namespace joiner-system: sleep: schedule and duration go together, and the duration is longer than 0"}},
		"words":              {stack: map[string]string{v1.AnnotationHibernationSchedule: "0 20 * * *", v1.AnnotationHibernationDuration: "long"}, want: cluster.Disruption{ReportOnly: true, Message: "namespace joiner-system: annotation joiner.sh/hibernation-duration: \"long\" is no duration longer than 0; write it like 12h; sleep: schedule and duration go together, and the duration is longer than 0"}},
		"no time at all":     {stack: stack, own: map[string]string{v1.AnnotationHibernationDuration: "0s"}, want: cluster.Disruption{ReportOnly: true, Message: "annotation joiner.sh/hibernation-duration: \"0s\" is no duration longer than 0; write it like 12h"}},
		"the pool is broken": {stack: stack, own: map[string]string{v1.AnnotationHibernationDuration: "1h"}, want: cluster.Disruption{SleepFor: time.Hour, ReportOnly: true, Message: "sleep: schedule and duration go together, and the duration is longer than 0"}},
	} {
		p := &v1.NodePool{ObjectMeta: metav1.ObjectMeta{Annotations: c.own}}
		got := SleepWith(c.stack, c.own, ReadDisruption(p))
		c.want.Policy = "WhenEmptyOrUnderutilized"
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
