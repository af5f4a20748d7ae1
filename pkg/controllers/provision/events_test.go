package provision

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/provisioning/ceiling"
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

// A pod whose anti-affinity is beyond what its namespace may have is told; one that is gone gets no event.
func TestAPodWhoseAntiAffinityIsNotReadIsTold(t *testing.T) {
	s := cluster.Snapshot{Pods: []cluster.Pod{{Namespace: "evil", Name: "run-7", UID: "u1", NodeName: "n"}}}
	got := unreadEvents(s, []plan.UnreadPod{{Pod: "evil/gone", Node: "n"}, {Pod: "evil/run-7", Node: "n", Terms: 3200, Read: 499}})
	want := []cluster.Event{{Kind: "Pod", Namespace: "evil", Name: "run-7", UID: "u1", Warning: true, Reason: "AntiAffinityNotRead", Every: 30 * time.Minute,
		Message: "running pods of its namespace have 3200 terms of required anti-affinity that differ, and 499 are read: this pod's is not, so its node n takes no further pods; let pods share terms"}}
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

// Who sets the limits of a NodePool is told which namespace makes it dear, without any setting.
func TestACostlyNamespaceIsTold(t *testing.T) {
	s := cluster.Snapshot{Pools: []cluster.Pool{{Name: "general", UID: "u1"}}}
	got := costlyEvents(s, []ceiling.CostlyNamespace{{Namespace: "evil", Nodes: 1000, USD: 3143.75, Running: 12, Pools: []string{"general", "gone"}}})
	want := []cluster.Event{{Kind: "NodePool", Name: "general", UID: "u1", Warning: true, Reason: "CostlyNamespace", Every: 30 * time.Minute,
		Message: "pods of namespace evil are to get 1000 new nodes for 3143.75 USD an hour, and all nodes that run cost 12.00; spec.limits and the annotation joiner.sh/limit-usd-per-hour bound a NodePool"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

// One namespace has too many pods without a place for the events of a pass: each other one is told as well.
func TestEventsAreSharedOut(t *testing.T) {
	all := map[string][]cluster.Event{}
	for ns, n := range map[string]int{"evil": 1000, "shop": 3, "blog": 60} {
		for range n {
			all[ns] = append(all[ns], cluster.Event{Namespace: ns})
		}
	}
	count := map[string]int{}
	out, left := shareEvents(all)
	for _, e := range out {
		count[e.Namespace]++
	}
	if count["evil"] != 24 || count["shop"] != 3 || count["blog"] != 23 || left != 1013 {
		t.Errorf("events: %v, left %d", count, left)
	}
}
