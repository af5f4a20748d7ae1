package simulator

import (
	"fmt"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/manypods"
)

// hostileNodes are nodes on which run pods of one tenant, each with 32 terms of anti-affinity of its own.
func hostileNodes(kind string, nodes, pods int) cluster.Snapshot {
	s := cluster.Snapshot{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	for i := range nodes {
		name := fmt.Sprintf("node-%d", i)
		room := resources.List{CPU: 8000, Memory: 32 << 30, Pods: 110}
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, Ready: true, Capacity: room, Allocatable: room,
			Labels: map[string]string{"kubernetes.io/hostname": name, "topology.kubernetes.io/zone": fmt.Sprint("us-west-2", i%4)}})
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "shop", Name: name, UID: name, Phase: "Running", NodeName: name,
			Labels: map[string]string{"app": fmt.Sprint(i % 50)}, Need: resources.List{CPU: 100, Pods: 1}})
	}
	for i, p := range manypods.Hostile(kind, pods) {
		p.Phase, p.Unscheduled, p.NodeName, p.Need.CPU = "Running", false, fmt.Sprintf("node-%d", i%nodes), 1
		s.Pods = append(s.Pods, p)
	}
	return s
}

// What runs of a tenant and keeps away from his own pods alone is no work for those of others that move.
func TestRunningPodsOfATenantAreNoWorkForOthers(t *testing.T) {
	for _, kind := range []string{"apart", "apart on hosts", "apart from other namespaces", "spread", "near"} {
		sim := New(hostileNodes(kind, 50, 1000), nil)
		sim.rulesOf(sim.classOf(&sim.s.Pods[0]))
		if n := len(sim.counters); n > 0 {
			t.Errorf("%s: %d counters for a pod of another namespace", kind, n)
		}
		own := &sim.s.Pods[len(sim.s.Pods)-1]
		if sim.rulesOf(sim.classOf(own)); len(sim.counters) > 32 {
			t.Errorf("%s: %d counters for one of his", kind, len(sim.counters))
		}
	}
}

// A pod that moves is kept away by those that stand, whoever was asked about before.
func TestStandingPodsKeepOthersAway(t *testing.T) {
	s := hostileNodes("apart on hosts", 2, 2)
	s.Pods[2].AntiAffinity[0].NamespaceSelector = &cluster.Selector{}
	s.Pods[2].AntiAffinity[0].Selector = &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "1")}}
	s.Namespaces = []cluster.Namespace{{Name: "shop"}, {Name: manypods.HostileNamespace}}
	sim := New(s, nil)
	for pod, want := range map[int][2]bool{0: {true, true}, 1: {false, true}} {
		for node, may := range want {
			if got := sim.rulesOf(sim.classOf(&sim.s.Pods[pod])).allowsNode(sim.nodes[node]); got != may {
				t.Errorf("pod %d on node %d: %v", pod, node, got)
			}
		}
	}
}
