package whatif_test

import (
	"fmt"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/whatif"
)

// The pod asks for a zone in which nothing is sold. Without that selector it gets a node.
func ExampleForPod() {
	room := resources.List{CPU: 1930, Memory: 7168 * resources.MiB, Pods: 29}
	large := instancetypes.Type{
		Name: "m5.large", Capacity: room, Allocatable: room,
		Requirements: requirements.FromLabels(map[string]string{
			"node.kubernetes.io/instance-type": "m5.large", "topology.kubernetes.io/zone": "eu-west-1a",
			v1.LabelCapacityType: instancetypes.OnDemand,
		}),
		Offerings: []instancetypes.Offering{{Price: 0.096, Available: true, OfferingKey: instancetypes.OfferingKey{
			CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "eu-west-1a"}}},
	}
	s := cluster.Snapshot{
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Classes: []instancetypes.Class{{Name: "default", Ready: true}},
		Pools:   []cluster.Pool{{Name: "general", Class: "default", Ready: true}},
		Pods: []cluster.Pod{{Namespace: "shop", Name: "web", Phase: "Pending", Unscheduled: true,
			NodeSelector: map[string]string{"topology.kubernetes.io/zone": "eu-west-1b"},
			Need:         resources.List{CPU: 500, Memory: 1024 * resources.MiB, Pods: 1}}},
	}
	sells := func(string) []instancetypes.Type { return []instancetypes.Type{large} }

	answer := whatif.ForPod(s, sells, "shop/web", whatif.Limits{Work: whatif.DefaultWork})
	for _, change := range answer.Changes {
		for _, edit := range change.Edits {
			fmt.Println(edit.Kind, edit.Name, edit.Field, edit.From)
		}
		fmt.Println(change.Brings)
	}
	// Output:
	// Pod web spec.nodeSelector.topology.kubernetes.io/zone eu-west-1b
	// a new on-demand m5.large in eu-west-1a of NodePool general at 0.0960 USD/h
}
