package cluster_test

import (
	"fmt"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
)

// A node and its NodeClaim are one StateNode: until the node has registered, the claim says what it will have.
func ExampleSnapshot_StateNodes() {
	labels := map[string]string{v1.LabelNodePool: "general"}
	s := cluster.Snapshot{
		Nodes: []cluster.Node{{Name: "ip-10-0-1-7", ProviderID: "aws:///eu-west-1a/i-1", Labels: labels, Ready: true,
			Allocatable: resources.List{CPU: 1930, Pods: 29}}},
		Claims: []cluster.Claim{
			{Name: "general-a", Pool: "general", ProviderID: "aws:///eu-west-1a/i-1", NodeName: "ip-10-0-1-7", Labels: labels},
			{Name: "general-b", Pool: "general", ProviderID: "aws:///eu-west-1b/i-2", Labels: labels,
				Allocatable: resources.List{CPU: 3920, Pods: 58}},
		},
	}
	for _, node := range s.StateNodes() {
		fmt.Println(node.Claim.Name, node.Name(), node.Allocatable())
	}
	// Output:
	// general-a ip-10-0-1-7 cpu=1930m pods=29
	// general-b general-b cpu=3920m pods=58
}
