package binpack_test

import (
	"fmt"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
)

// sold is an instance type as one zone sells it on demand.
func sold(name string, milliCPU, mib int64, usd float64) instancetypes.Type {
	room := resources.List{CPU: milliCPU, Memory: mib * resources.MiB, Pods: 58}
	return instancetypes.Type{
		Name: name, Capacity: room, Allocatable: room,
		Requirements: requirements.NewSet(
			requirements.Of("node.kubernetes.io/instance-type", name),
			requirements.Of("topology.kubernetes.io/zone", "eu-west-1a"),
			requirements.Of(v1.LabelCapacityType, instancetypes.OnDemand),
		),
		Offerings: []instancetypes.Offering{{Price: usd, Available: true, OfferingKey: instancetypes.OfferingKey{
			CapacityType: instancetypes.OnDemand, Type: name, Zone: "eu-west-1a"}}},
	}
}

// Three pods wait. Two share the cheapest node that holds both, and the third fits no type that is sold.
func ExamplePodsFrom() {
	wait := func(name string, milliCPU, mib int64) cluster.Pod {
		return cluster.Pod{Namespace: "shop", Name: name, Unscheduled: true,
			Need: resources.List{CPU: milliCPU, Memory: mib * resources.MiB, Pods: 1}}
	}
	s := cluster.Snapshot{
		Now:     time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC),
		Classes: []instancetypes.Class{{Name: "default", Ready: true}},
		Pools:   []cluster.Pool{{Name: "general", Class: "default", Ready: true}},
		Pods:    []cluster.Pod{wait("web", 900, 1024), wait("cache", 900, 6144), wait("giant", 64000, 1024)},
	}
	sells := func(string) []instancetypes.Type {
		return []instancetypes.Type{sold("c5.large", 1930, 3072, 0.085), sold("m5.large", 1930, 7168, 0.096)}
	}
	p := binpack.PodsFrom(s, sells)
	for _, line := range p.Lines() {
		fmt.Println(line)
	}
	fmt.Printf("%.3f USD/h, no plan costs less than %.3f\n", p.TotalPrice(), p.LowerBoundUSD)
	// Output:
	// launch on-demand m5.large in eu-west-1a from pool general at 0.0960 USD/h (1 types possible) for shop/web,shop/cache
	// unschedulable shop/giant: pool general: no instance type is big enough for cpu=64 memory=1024Mi; the largest has cpu=1930m
	// 0.096 USD/h, no plan costs less than 0.096
}
