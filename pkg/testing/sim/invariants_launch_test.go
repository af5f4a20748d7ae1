package sim

import (
	"testing"
	"testing/synctest"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	decided "joiner.sh/pkg/model/plan"
)

// A pod that a node on its way cannot have for its volumes does not wait for that node, from when nodes say how many
// they attach. Of the pods before it, each waits.
func TestCapacityCountedKnowsOfVolumes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := peaceful(t)
		defer w.endInvocations()
		w.volumes.most = 4
		db := heavy("db", 3)
		db.stateful, db.volumes, db.pattern.Owner = true, 2, cluster.OwnerStatefulSet
		w.workloads.startApp(db)
		pods := w.workloads.podsOf(db)
		have := &claim{Claim: cluster.Claim{Name: "have", UID: "uid-have", Created: time.Now(), Annotations: map[string]string{}}}
		keys := ""
		for i, p := range pods {
			have.pods = append(have.pods, p.UID)
			if i > 0 {
				keys += ","
			}
			keys += p.Key()
		}
		have.Annotations[v1.AnnotationNominatedPods] = keys
		w.api.claims[have.Name], w.api.byUID[have.UID] = have, have
		twice := func(i int) bool {
			made := claimCreated{&claim{pods: []string{pods[i].UID}}, decided.Launch{Pods: []string{pods[i].Key()}}}
			return len(checkCapacityCounted(w, made)) > 0
		}
		if !twice(2) {
			t.Error("no node has said what it attaches, and the third pod does not wait")
		}
		w.volumes.join("first")
		w.runUntil(time.Now().Add(time.Minute), func(*portRequest) {})
		for i, want := range []bool{true, true, false} {
			if twice(i) != want {
				t.Errorf("pod %d: counted twice %v, want %v", i, !want, want)
			}
		}
	})
}
