package main

import (
	"fmt"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// Amounts that a generated DaemonSet or two and some air take off each node, in millicores and MiB.
const (
	keptCPU    = 300
	keptMemory = 500
)

// middling is what a pod of a service asks for, about, in millicores: nodes are no smaller than for as many as each is
// to run.
const middling = 400

// addCluster adds nodes of the pool general, up to so many percent full of pods of services that do not mind where they
// are.
func (g *generator) addCluster(f *workload.File, nodes, bound, full int) {
	var easy []workload.PodGroup
	for i, s := range f.Groups {
		plain := len(s.Pod.Spec.NodeSelector) == 0 && s.Pod.Spec.Affinity == nil &&
			len(s.Pod.Spec.TopologySpreadConstraints) == 0 &&
			len(s.Pod.Spec.Tolerations) == 0
		if plain || i == 0 {
			easy = append(easy, s)
		}
	}
	for i := range easy[:min(len(easy), 40)] {
		b := easy[i]
		b.Count = 0
		if i == 0 { // the first is always there; it must not mind either
			b.Pod.Spec = podSpec("250m", "512Mi")
		}
		f.BoundGroups = append(f.BoundGroups, b)
	}
	sold := slices.DeleteFunc(slices.Clone(g.types),
		func(t instancetypes.Type) bool { return !slices.Contains(nodeTypes(), t.Name) })
	if large := slices.DeleteFunc(slices.Clone(sold),
		func(t instancetypes.Type) bool { return t.Allocatable.CPU*int64(nodes) < middling*int64(bound) }); len(
		large) > 0 {
		sold = large
	}
	for i := range nodes {
		n, t := g.drawNode(i, sold)
		each := (bound + nodes - i - 1) / (nodes - i) // what small nodes do not take goes to the next
		g.fillNode(&n, t, f.BoundGroups, each, int64(full))
		for _, count := range n.Pods { // a sum does not depend on the order
			bound -= count
		}
		f.Nodes = append(f.Nodes, n)
	}
}

// drawNode is the i-th node: an empty one of one of the types, in one of the offerings that can be had.
func (g *generator) drawNode(i int, types []instancetypes.Type) (workload.Node, instancetypes.Type) {
	t := types[g.rand.IntN(len(types))]
	o := t.Offerings[g.rand.IntN(len(t.Offerings))]
	for !o.Available {
		o = t.Offerings[g.rand.IntN(len(t.Offerings))]
	}
	return workload.Node{
		Name: fmt.Sprintf("node-%05d", i), NodePool: "general", InstanceType: t.Name, Zone: o.Zone,
		CapacityType: o.CapacityType, Pods: map[string]int{},
	}, t
}

// fillNode puts up to most pods onto the node, until it is so many percent full.
func (g *generator) fillNode(n *workload.Node, t instancetypes.Type, groups []workload.PodGroup, most int, full int64) {
	cpu, memory, pods := t.Allocatable.CPU*full/100-keptCPU, t.Allocatable.Memory*full/100-keptMemory<<20,
		t.Allocatable.Pods-8
	for misses := 0; most > 0 && pods > 0 && misses < 60; {
		b := groups[g.rand.IntN(len(groups))]
		r := b.Pod.Spec.Containers[0].Resources.Requests
		if r.Cpu().MilliValue() > cpu || r.Memory().Value() > memory {
			misses++
			continue
		}
		cpu, memory = cpu-r.Cpu().MilliValue(), memory-r.Memory().Value()
		n.Pods[b.Name]++
		most--
		pods--
	}
}

// nodeTypes are the types of generated nodes.
func nodeTypes() []string {
	return []string{"m6a.2xlarge", "m6i.4xlarge", "c6i.4xlarge", "c7g.2xlarge", "r6g.2xlarge", "m7g.4xlarge",
		"m5.8xlarge", "m6a.8xlarge"}
}
