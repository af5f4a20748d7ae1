// Package manypods has clusters of many pods for tests and benchmarks of the packer.
//
// Start with Services. It refuses to know how pods are packed.
package manypods

import (
	"fmt"
	"slices"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Services is a cluster of n pending pods in deployments of 50, of which some spread over zones or stay apart, some
// want on-demand and some arm64, before one pool that may launch nearly everything.
func Services(b testing.TB, n int) cluster.Snapshot {
	b.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		b.Fatal(err)
	}
	generation, err := requirements.NewRequirement("karpenter.k8s.aws/instance-generation", requirements.Gt, "2")
	if err != nil {
		b.Fatal(err)
	}
	s := cluster.Snapshot{
		Catalog: c, Classes: []instancetypes.Class{instancetypes.DefaultClass(c)},
		Pools: []cluster.Pool{{Name: "default", Class: "default", Ready: true, Requirements: requirements.NewSet(
			requirements.Of("karpenter.k8s.aws/instance-category", "c", "m", "r"),
			requirements.Of("karpenter.sh/capacity-type", "spot", "on-demand"), generation,
		)}},
	}
	for i := range n {
		app := i / 50
		name := fmt.Sprintf("app-%04d", app)
		p := cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("%s-%d", name, i%50), Phase: "Pending", Unscheduled: true,
			Labels: map[string]string{"app": name},
			Need: resources.List{CPU: int64(100 + app*37%40*100), Memory: int64(128+app*53%64*128) * resources.MiB,
				Pods: 1},
		}
		mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", name)}}
		switch app % 7 {
		case 1, 2:
			p.Spread = []cluster.Spread{{Key: instancetypes.LabelZone, MaxSkew: 1, Selector: mine}}
		case 3:
			p.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.OnDemand}
		case 4:
			p.NodeSelector = map[string]string{instancetypes.LabelArch: "arm64"}
		case 5:
			p.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: mine}}
		}
		s.Pods = append(s.Pods, p)
	}
	return s
}

// Standing adds nodes with 28 pods each that run already.
func Standing(b testing.TB, s cluster.Snapshot, nodes int) cluster.Snapshot {
	b.Helper()
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	i := slices.IndexFunc(types, func(t instancetypes.Type) bool { return t.Name == "m6g.8xlarge" })
	if i < 0 {
		b.Fatal("the catalog has no m6g.8xlarge")
	}
	waiting := s.Pods
	for n := range nodes {
		labels := types[i].Requirements.Labels()
		labels[instancetypes.LabelZone] = fmt.Sprintf("us-west-2%c", 'a'+n%4)
		name := fmt.Sprintf("node-%05d", n)
		s.Nodes = append(s.Nodes, cluster.Node{Name: name, Labels: labels, Capacity: types[i].Capacity,
			Allocatable: types[i].Allocatable})
		for j := range 28 {
			p := waiting[(n*28+j*53)%len(waiting)]
			p.AntiAffinity, p.Name, p.NodeName, p.Phase, p.Unscheduled = nil, fmt.Sprintf("old-%05d-%d", n, j), name,
				"Running", false
			p.Need = resources.List{CPU: 1000, Memory: 2048 * resources.MiB, Pods: 1}
			s.Pods = append(s.Pods, p)
		}
	}
	return s
}

// PartlyFree is Services before nodes, every other of them on-demand, that are free to a good part: what their room is
// used for decides what has to be launched.
func PartlyFree(b testing.TB, pods, nodes int) cluster.Snapshot {
	s := Standing(b, Services(b, pods), nodes)
	for i := range s.Nodes {
		s.Nodes[i].Labels[instancetypes.LabelCapacityType] = []string{instancetypes.Spot, instancetypes.OnDemand}[i%2]
	}
	// Of the 28 pods of each node every third stays.
	n := 0
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool {
		n++
		return p.NodeName != "" && n%3 != 0
	})
	return s
}

// Sold returns what the classes of the cluster can launch, at what nodes cost with their volumes and addresses.
func Sold(s cluster.Snapshot) func(class string) []instancetypes.Type {
	known := map[string][]instancetypes.Type{}
	return func(class string) []instancetypes.Type {
		if c, exists := s.ClassOf(class); exists && known[class] == nil {
			types := instancetypes.ResolveTypes(s.Catalog, c, s.Unavailable, s.Now)
			known[class] = instancetypes.AddNodeCosts(types, s.Catalog.NodeCostOf(c))
		}
		return known[class]
	}
}

// Identical is a cluster of n pods of 1 cpu and 2 GiB.
func Identical(b testing.TB, n int) cluster.Snapshot {
	s := Services(b, 0)
	for i := range n {
		s.Pods = append(s.Pods, cluster.Pod{
			Namespace: "default", Name: fmt.Sprintf("web-%d", i), Phase: "Pending", Unscheduled: true,
			Need: resources.List{CPU: 1000, Memory: 2048 * resources.MiB, Pods: 1},
		})
	}
	return s
}
