package interruption_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// Pods without room block only nodes that may go now: not one that waits for something else, nor a claim without a
// node.
func TestWhatIsBlockedByCapacity(t *testing.T) {
	pod := func(name, on string) cluster.Pod {
		return cluster.Pod{Namespace: "ns", Name: name, NodeName: on, Phase: "Running", Owner: cluster.OwnerOther}
	}
	s := cluster.Snapshot{Now: noon(), Pods: []cluster.Pod{pod("web", "n1"), pod("db", "n2"), pod("new", "")}}
	going := []interruption.PendingReplacement{{Claim: "c1", Node: "n1"}, {Claim: "c2", Node: "n2", Wait: "a budget"},
		{Claim: "c3"}}
	none := func(pod string) plan.Unplaced {
		return plan.Unplaced{Pod: "ns/" + pod, Why: []string{"nothing is sold"}}
	}
	packed := plan.Plan{Unplaced: []plan.Unplaced{none("web"), none("db"), none("new")}}
	got := interruption.BlockedByCapacity(s, going, packed)
	want := map[string]string{"c1": "pod ns/web has no room elsewhere: nothing is sold"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
