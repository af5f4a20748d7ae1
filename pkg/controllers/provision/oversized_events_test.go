package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

// The event is on the DaemonSet; one that is gone meanwhile gets none.
func TestAnOversizedDaemonSetIsTold(t *testing.T) {
	s := cluster.Snapshot{Daemons: []cluster.Pod{{Namespace: "evil", Name: "big", UID: "u1", Owner: cluster.OwnerDaemonSet}}}
	got := oversizedEvents(s, []plan.OversizedDaemon{{DaemonSet: "evil/big", Need: "cpu=1000", Pools: []string{"a", "b", "c", "d", "e", "f"}},
		{DaemonSet: "evil/gone", Need: "cpu=1000", Pools: []string{"a"}}})
	want := []cluster.Event{{Kind: "DaemonSet", Namespace: "evil", Name: "big", UID: "u1", Warning: true, Reason: "Oversized", Every: 30 * time.Minute,
		Message: "no instance type of NodePool a, b, c, d, e and 1 more holds cpu=1000 beside smaller DaemonSets, so its pods have no place there and new nodes keep no room for them"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// A DaemonSet that asks for more than one may says so too.
func TestADaemonSetOfTooManyTermsIsTold(t *testing.T) {
	s := cluster.Snapshot{Daemons: []cluster.Pod{{Namespace: "evil", Name: "many", UID: "u1", Unmodelled: []string{"it has 33 terms"}},
		{Namespace: "shop", Name: "odd", UID: "u2", Unmodelled: []string{"odd"}, Need: resources.List{CPU: 1}}}}
	want := []cluster.Event{{Kind: "DaemonSet", Namespace: "evil", Name: "many", UID: "u1", Warning: true, Reason: "Oversized", Every: 30 * time.Minute,
		Message: "new nodes keep no room for its pods: it has 33 terms"}}
	if d := cmp.Diff(want, oversizedEvents(s, nil)); d != "" {
		t.Error(d)
	}
}
