package lifecycle

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// Of a claim that runs on a Ready node nobody need know more than was known some minutes ago.
func TestWhichInstancesAreInDoubt(t *testing.T) {
	initialized := []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}
	stopped := append([]cluster.Condition{{Type: v1.ConditionStopped, Status: "True"}}, initialized...)
	claim := func(id string, conditions []cluster.Condition) cluster.Claim {
		return cluster.Claim{Name: id, UID: id, ProviderID: "aws:///a/i-" + id, Conditions: conditions}
	}
	node := func(id string, ready bool) cluster.Node {
		return cluster.Node{Name: id, ProviderID: "aws:///a/i-" + id, Ready: ready, Finalizer: true, Labels: map[string]string{awsv1.LabelEC2NodeClass: "default"}}
	}
	deleted := claim("deleted", initialized)
	deleted.Deleting = time.Unix(1, 0)
	deletedNode := node("node-deleted", true)
	deletedNode.Deleting = time.Unix(1, 0)
	warm := map[string]string{v1.AnnotationStoppedCapacity: "true"}
	rests, starts, runs := claim("rests", stopped), claim("starts", stopped), claim("runs", stopped)
	rests.Annotations, runs.Annotations = warm, warm
	starts.Annotations = map[string]string{v1.AnnotationStoppedCapacity: "true", v1.AnnotationStartRequested: "2026-05-08T12:00:00Z"}
	stops := claim("stops", append([]cluster.Condition{{Type: v1.ConditionStopped, Status: "Unknown", Reason: v1.ReasonStopping}}, initialized...))
	stops.Annotations = warm
	foreign := node("foreign", true)
	foreign.Finalizer = false
	s := cluster.Snapshot{
		Claims: []cluster.Claim{claim("settled", initialized), claim("new", nil), claim("not-ready", initialized), claim("no-node", initialized), claim("node-deleted", initialized),
			deleted, rests, starts, runs, stops, {Name: "unlaunched"}},
		Nodes: []cluster.Node{node("settled", true), node("new", true), node("not-ready", false), deletedNode, node("deleted", true), node("runs", true), node("stops", true),
			node("orphan", true), foreign},
	}
	want := []string{"i-deleted", "i-new", "i-no-node", "i-node-deleted", "i-not-ready", "i-orphan", "i-runs", "i-starts", "i-stops"}
	if d := cmp.Diff(want, DoubtfulInstances(s)); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
}

func TestWhichInstancesAnActionIsAbout(t *testing.T) {
	s := cluster.Snapshot{
		Claims:    []cluster.Claim{{Name: "c", UID: "u", ProviderID: "aws:///a/i-1"}, {Name: "unlaunched", UID: "v"}},
		Nodes:     []cluster.Node{{Name: "n", ProviderID: "aws:///a/i-2"}, {Name: "unnamed"}},
		Instances: []cluster.Instance{{ID: "i-3", ClaimUID: "u"}, {ID: "i-4", ClaimUID: "v"}, {ID: "i-5"}},
	}
	x := NewInstanceIndex(s)
	for _, c := range []struct {
		action plan.Action
		want   []string
		all    bool
	}{
		{plan.Action{Do: plan.Terminate, Instance: "i-5"}, []string{"i-5"}, false},
		{plan.Action{Do: plan.DeleteClaim, Claim: "c"}, []string{"i-3", "i-1"}, false},
		{plan.Action{Do: plan.DeleteClaim, Claim: "unlaunched"}, []string{"i-4"}, true},
		{plan.Action{Do: plan.DeleteNode, Node: "n"}, []string{"i-2"}, false},
		{plan.Action{Do: plan.DeleteNode, Node: "unnamed"}, nil, false},
	} {
		got, all := x.InstancesOf(c.action)
		if d := cmp.Diff(c.want, got); d != "" || all != c.all {
			t.Errorf("%s: all %t (-want +got):\n%s", c.action, all, d)
		}
	}
}
