package translate_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"

	"joiner.sh/pkg/api/joiner/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// A status is read as it was written, and each problem is a condition that is False and says it.
func TestRolloutStatusIsReadAsWritten(t *testing.T) {
	now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	o := &v1alpha1.NodeRollout{Spec: v1alpha1.NodeRolloutSpec{Analysis: &v1alpha1.RolloutAnalysis{Alarms: []string{"errors"}}}}
	st := cluster.RolloutStatus{Phase: cluster.RolloutProgressing, Revision: "b", LastGood: "a", PreviousGood: "z", Step: 1, StepStarted: now, NewNodes: 1,
		OldNodes: 2, Allowed: 3, Tried: []cluster.TriedNode{{Name: "n", State: cluster.TriedLost}},
		OldPods: []cluster.OldPods{{Controller: "u", Pods: 3, Bad: 1, Left: now}, {Controller: "v", Pods: 1}}, Failed: []string{"f"}, Evidence: []string{"e"},
		Message: "m", ResumeToken: "t", Refused: "refused", Unavailable: "unavailable", NoAlarm: "no alarm"}
	translate.SetRolloutStatus(o, st, now)
	got := translate.Rollout(o, nil)
	if diff := cmp.Diff(st, got.Status); diff != "" {
		t.Errorf("(-written +read):\n%s", diff)
	}
	if diff := cmp.Diff([]cluster.Alarm{{Name: "errors"}}, got.Alarms); diff != "" {
		t.Error(diff)
	}
	for kind, message := range map[string]string{"Accepted": "refused", "LastGoodAvailable": "unavailable", "AlarmsFound": "no alarm"} {
		if k := meta.FindStatusCondition(o.Status.Conditions, kind); k == nil || k.Status != "False" || k.Message != message {
			t.Errorf("%s: %+v", kind, k)
		}
	}
	translate.SetRolloutStatus(o, cluster.RolloutStatus{}, now)
	if !meta.IsStatusConditionTrue(o.Status.Conditions, "AlarmsFound") || translate.Rollout(o, nil).Status.NoAlarm != "" {
		t.Errorf("%+v", o.Status.Conditions)
	}
}
