package disruption_test

import (
	"fmt"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// large is the only type that is sold.
func large() instancetypes.Type {
	room := resources.List{CPU: 1930, Memory: 7168 * resources.MiB, Pods: 29}
	return instancetypes.Type{
		Name: "m5.large", Capacity: room, Allocatable: room,
		Requirements: requirements.FromLabels(map[string]string{
			"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "eu-west-1a",
			v1.LabelCapacityType: instancetypes.OnDemand,
		}),
		Offerings: []instancetypes.Offering{{Price: 0.096, Available: true, OfferingKey: instancetypes.OfferingKey{
			CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "eu-west-1a"}}},
	}
}

// addNode adds a node that is in service, and its NodeClaim.
func addNode(s *cluster.Snapshot, name string) {
	t := large()
	labels := t.Requirements.Labels()
	labels[v1.LabelNodePool], labels[v1.LabelRegistered], labels[v1.LabelInitialized] = "general", "true", "true"
	node := cluster.Node{Name: name, ProviderID: "aws:///eu-west-1a/" + name, Labels: labels, Capacity: t.Capacity,
		Allocatable: t.Allocatable, Ready: true}
	s.Nodes = append(s.Nodes, node)
	s.Claims = append(s.Claims, cluster.Claim{Name: "claim-" + name, Pool: "general", Class: "default",
		ProviderID: node.ProviderID, NodeName: name, Labels: labels, Capacity: t.Capacity, Allocatable: t.Allocatable})
}

// Two nodes hold one small pod each. The first pass proposes that one of them goes, because its pod fits on the other.
// A later pass asks again, and begins what still holds. Memory is what a caller keeps from one pass to the next.
func ExampleNext() {
	s := cluster.Snapshot{
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Classes: []instancetypes.Class{{Name: "default", Ready: true}},
		Pools: []cluster.Pool{{Name: "general", Class: "default", Ready: true, Disruption: cluster.Disruption{
			Policy: string(v1.ConsolidationWhenEmptyOrUnderutilized)}}},
	}
	for _, name := range []string{"one", "two"} {
		addNode(&s, name)
		s.Pods = append(s.Pods, cluster.Pod{Namespace: "shop", Name: "web-" + name, NodeName: name, Phase: "Running",
			Ready: true, Controller: "web", Need: resources.List{CPU: 500, Memory: 1024 * resources.MiB, Pods: 1}})
	}
	sells := func(string) []instancetypes.Type { return []instancetypes.Type{large()} }

	var memory disruption.Memory
	for range 2 {
		var p disruption.Plan
		p, memory = disruption.Next(s, memory, sells)
		for _, c := range p.Proposed {
			fmt.Println("proposed", c)
		}
		for _, c := range p.Begin {
			fmt.Println("begin", c)
		}
		s.Now = s.Now.Add(time.Minute)
	}
	// Output:
	// proposed Underutilized: claim-one without replacement, saves 0.0960 USD/h, moves 1 pods
	// begin Underutilized: claim-one without replacement, saves 0.0960 USD/h, moves 1 pods
}
