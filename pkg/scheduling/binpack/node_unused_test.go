package binpack

import (
	"fmt"
	"testing"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
)

// When a node counts as bought in vain: 15 s after it became ready where its pods do not fit, a minute after that where
// nobody knows why they wait, and never where they ran, came later, or Joiner itself keeps them off.
func TestWhichNodesAreBoughtInVain(t *testing.T) {
	const second, agent = time.Second, "agents.example.com/setup"
	tainted := func(key string) func(*cluster.Snapshot) {
		return func(s *cluster.Snapshot) {
			s.Nodes[0].Taints = []cluster.Taint{{Key: key, Value: "a", Effect: "NoSchedule"}}
		}
	}
	for name, c := range map[string]struct {
		age     time.Duration // since it became ready
		change  func(*cluster.Snapshot)
		allowed int // nodes of the kind that may be; 0 where it is not bought in vain
	}{
		"nobody knows why, too soon":   {59 * second, func(*cluster.Snapshot) {}, 0},
		"nobody knows why":             {60 * second, func(*cluster.Snapshot) {}, 3},
		"too small, too soon":          {14 * second, func(s *cluster.Snapshot) { s.Nodes[0].Allocatable.CPU = 1000 }, 0},
		"too small":                    {15 * second, func(s *cluster.Snapshot) { s.Nodes[0].Allocatable.CPU = 1000 }, 3},
		"a taint that nobody declared": {15 * second, tainted(agent), 3},
		"a taint that keeps nobody off": {59 * second, func(s *cluster.Snapshot) {
			s.Nodes[0].Taints = []cluster.Taint{{Key: "spare", Effect: "PreferNoSchedule"}}
		}, 0},
		"a cordon, too soon": {14 * second, tainted("node.kubernetes.io/unschedulable"), 0},
		"a cordon":           {15 * second, tainted("node.kubernetes.io/unschedulable"), 3},
		"the cordon of stopped capacity": {10 * time.Minute, func(s *cluster.Snapshot) {
			tainted("node.kubernetes.io/unschedulable")(s)
			s.Claims[0].Annotations[api.AnnotationStoppedCapacity] = "true"
		}, 0},
		"held for its pods":         {10 * time.Minute, tainted(api.TaintHold), 0},
		"of a revision that failed": {10 * time.Minute, tainted(api.TaintFailedRevision), 0},
		"one before it is replaced": {10 * time.Minute, tainted(api.TaintPreviousRevision), 0},
		"an agent is still awaited": {60 * second, func(s *cluster.Snapshot) {
			tainted(agent)(s)
			delete(s.Nodes[0].Labels, api.LabelInitialized)
			s.Claims[0].Conditions = s.Claims[0].Conditions[:1]
			s.Nodes[0].Created = s.Now.Add(-2 * time.Minute)
		}, 0},
		"its devices are still awaited": {10 * time.Minute, func(s *cluster.Snapshot) {
			lackDevices(s)
			delete(s.Nodes[0].Labels, api.LabelInitialized)
			s.Claims[0].Conditions = s.Claims[0].Conditions[:1]
		}, 0},
		"it lost its devices": {15 * second, lackDevices, 3},
		"its devices are ill": {15 * second, func(s *cluster.Snapshot) {
			lackDevices(s)
			delete(s.Nodes[0].Labels, api.LabelInitialized)
			s.Claims[0].Conditions = s.Claims[0].Conditions[:1]
			s.Nodes[0].Capacity = s.Nodes[0].Capacity.With(instancetypes.ResourceNVIDIA, 1)
		}, 3},
		"the pod came after the node": {60 * second, func(s *cluster.Snapshot) { s.Pods[0].Created = s.Nodes[0].ReadySince }, 0},
		"another pod runs there": {60 * second, func(s *cluster.Snapshot) {
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "b", NodeName: "n1", Phase: "Running", Owner: cluster.OwnerOther})
		}, 0},
		"a daemon runs there": {60 * second, func(s *cluster.Snapshot) {
			s.Pods = append(s.Pods, cluster.Pod{Namespace: "default", Name: "b", NodeName: "n1", Phase: "Running", Owner: cluster.OwnerDaemonSet})
		}, 3},
		"an image of before": {60 * second, func(s *cluster.Snapshot) { s.Claims[0].ImageID = "ami-0" }, 0},
		"a spec of before":   {60 * second, func(s *cluster.Snapshot) { s.Claims[0].Annotations[awsv1.AnnotationHash] = "0" }, 0},
		"one of 399 nodes":   {60 * second, func(s *cluster.Snapshot) { addClaims(s, 398) }, 3},
		"one of 400 nodes":   {60 * second, func(s *cluster.Snapshot) { addClaims(s, 399) }, 4},
	} {
		now := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		s := vainNode(now, c.age)
		c.change(&s)
		got := 0
		if unused, _ := UnusedNodes(s); len(unused) == 1 {
			got = unused[0].Allowed
		} else if len(unused) > 1 {
			t.Fatalf("%s: %v", name, unused)
		}
		if got != c.allowed {
			t.Errorf("%s: %d nodes of its kind are allowed, want %d", name, got, c.allowed)
		}
	}
}

// vainNode is a node that has been ready for so long, with its claim, and the pod that it was bought for, which waits.
func vainNode(now time.Time, age time.Duration) cluster.Snapshot {
	const id = "aws:///us-west-2a/i-1"
	ready := now.Add(-age)
	conditions := []cluster.Condition{{Type: api.ConditionRegistered, Status: "True", Since: ready.Add(-time.Minute)},
		{Type: api.ConditionInitialized, Status: "True", Since: ready}}
	return cluster.Snapshot{Now: now,
		Classes: []instancetypes.Class{{Name: "default", Hash: "1", Images: []instancetypes.Image{{ID: "ami-1"}}}},
		Claims: []cluster.Claim{{Name: "c1", UID: "u1", Pool: "p", Class: "default", ProviderID: id, ImageID: "ami-1", NodeName: "n1",
			Created: ready.Add(-2 * time.Minute), Conditions: conditions, Labels: map[string]string{instancetypes.LabelType: "m5.large"},
			Annotations: map[string]string{api.AnnotationNominatedPods: "default/a", awsv1.AnnotationHash: "1"}}},
		Nodes: []cluster.Node{{Name: "n1", ProviderID: id, Created: ready.Add(-time.Hour), Ready: true, ReadySince: ready,
			Labels:      map[string]string{api.LabelRegistered: "true", api.LabelInitialized: "true"},
			Allocatable: resources.List{CPU: 2000, Memory: 8192 * resources.MiB, Pods: 29}}},
		Pods: []cluster.Pod{{Namespace: "default", Name: "a", UID: "pod-a", Created: ready.Add(-time.Hour), Phase: "Pending", Owner: cluster.OwnerOther,
			Unscheduled: true, Need: resources.List{CPU: 1500, Memory: 1024 * resources.MiB, Pods: 1}}}}
}

// lackDevices has the pod ask for a GPU, for which the claim was made and which its node lacks.
func lackDevices(s *cluster.Snapshot) {
	s.Pods[0].Need = s.Pods[0].Need.With(instancetypes.ResourceNVIDIA, 1)
	s.Claims[0].Requests = s.Pods[0].Need
}

// addClaims adds so many claims to the pool.
func addClaims(s *cluster.Snapshot, n int) {
	for i := range n {
		s.Claims = append(s.Claims, cluster.Claim{Name: fmt.Sprintf("other-%03d", i), UID: fmt.Sprint("other-", i), Pool: "p", Class: "default"})
	}
}
