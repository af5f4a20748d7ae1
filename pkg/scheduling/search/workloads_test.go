package search_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/cockroachdb/datadriven"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/testing/manypods"
)

// TestPricesOfWorkloads shows what plans for workloads of many kinds cost, beside what no plan can undercut. A change
// of how nodes are chosen shows here by what it saves or costs.
func TestPricesOfWorkloads(t *testing.T) {
	t.Parallel()
	empty := manypods.Services(t, 0)
	types := instancetypes.ResolveTypes(empty.Catalog, empty.Classes[0], nil, empty.Now)
	datadriven.RunTest(t, "testdata/workloads", func(t *testing.T, d *datadriven.TestData) string {
		if d.Cmd != "workload" {
			d.Fatalf(t, "unknown command %s", d.Cmd)
		}
		s := workload(t, d, empty)
		p := solve(s, func(string) []instancetypes.Type { return types })
		if p.LowerBoundUSD > p.TotalPrice()*(1+1e-9) {
			t.Errorf("%s: the plan costs less than its bound", d.Pos)
		}
		out := fmt.Sprintf("%d nodes, %.4f USD/h, no plan below %.4f\n", len(p.Launches), p.TotalPrice(), p.LowerBoundUSD)
		if len(s.Nodes) > 0 {
			out += fmt.Sprintf("%d pods on nodes that there are\n", len(p.Existing))
		}
		if len(p.Unplaced) > 0 {
			out += fmt.Sprintf("%d pods without a node\n", len(p.Unplaced))
		}
		return out
	})
}

// workload returns a cluster with pods in so many deployments, drawn by a seed, and one pool:
//
//	workload apps=20 seed=3 [cores=8] [rules=(zone,host)] [family=(m5,c5)] [capacity=on-demand] [cpu=(2,4)] [nodes=3 [full]]
//
// A pod asks for at most so many cores, each deployment has one of the rules or none, and there are so many nodes,
// empty or with a third to all of their room left.
func workload(t *testing.T, d *datadriven.TestData, empty cluster.Snapshot) cluster.Snapshot {
	t.Helper()
	var apps, cores, nodes int
	var seed uint64
	var overhead string
	d.ScanArgs(t, "apps", &apps)
	d.ScanArgs(t, "seed", &seed)
	cores = 4
	if d.HasArg("cores") {
		d.ScanArgs(t, "cores", &cores)
	}
	if d.HasArg("nodes") {
		d.ScanArgs(t, "nodes", &nodes)
	}
	s := empty
	s.Pools = []cluster.Pool{empty.Pools[0]}
	for arg, key := range map[string]string{"family": "karpenter.k8s.aws/instance-family",
		"capacity": "karpenter.sh/capacity-type", "cpu": "karpenter.k8s.aws/instance-cpu"} {
		for _, a := range d.CmdArgs {
			if a.Key == arg {
				s.Pools[0].Requirements = s.Pools[0].Requirements.And(requirements.Of(key, a.Vals...))
			}
		}
	}
	rules := []string{"none"}
	for _, a := range d.CmdArgs {
		if a.Key == "rules" {
			rules = append(rules, a.Vals...)
		}
	}
	if d.HasArg("overhead") {
		d.ScanArgs(t, "overhead", &overhead)
		if _, err := fmt.Sscan(overhead, &s.Rules.PerNodeOverheadUSD); err != nil {
			d.Fatalf(t, "overhead: %v", err)
		}
	}
	for i := range nodes {
		node := emptyNode(i)
		if d.HasArg("full") {
			node.Allocatable.CPU = node.Allocatable.CPU * int64(320+i*7919%680) / 1000
			node.Allocatable.Memory = node.Allocatable.Memory * int64(290+i*6007%710) / 1000
		}
		s.Nodes = append(s.Nodes, node)
	}
	r := rand.New(rand.NewPCG(seed, 11))
	for app := range apps {
		s.Pods = append(s.Pods, deployment(r, fmt.Sprintf("app-%02d", app), rules[r.IntN(len(rules))], cores)...)
	}
	return s
}

// emptyNode is a node of two, four or eight cores in one of three zones.
func emptyNode(i int) cluster.Node {
	cores := int64(2 << (i % 3))
	room := resources.List{CPU: cores * 950, Memory: cores * 3500 * resources.MiB, Pods: 20}
	return cluster.Node{Name: fmt.Sprintf("node-%d", i), Ready: true, Capacity: room, Allocatable: room,
		Labels: map[string]string{instancetypes.LabelZone: fmt.Sprintf("us-west-2%c", 'a'+i%3), instancetypes.LabelArch: "amd64",
			instancetypes.LabelCapacityType: instancetypes.OnDemand}}
}

// deployment is up to 24 pending pods alike.
func deployment(r *rand.Rand, name, rule string, cores int) (pods []cluster.Pod) {
	cpu := int64(1+r.IntN(cores*20)) * 50
	p := cluster.Pod{
		Namespace: "default", Phase: "Pending", Unscheduled: true, Labels: map[string]string{"app": name},
		Need: resources.List{CPU: cpu, Memory: cpu * []int64{1, 2, 3, 4, 6, 8}[r.IntN(6)] * resources.MiB, Pods: 1},
	}
	mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", name)}}
	front := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("tier", "front")}}
	switch rule {
	case "front":
		p.Labels["tier"] = "front"
		p.Spread = []cluster.Spread{{Key: podclass.LabelHost, MaxSkew: 2, Selector: front}}
	case "zone":
		p.Spread = []cluster.Spread{{Key: instancetypes.LabelZone, MaxSkew: 1, Selector: mine}}
	case "host":
		p.Spread = []cluster.Spread{{Key: podclass.LabelHost, MaxSkew: 1, Selector: mine}}
	case "apart":
		p.AntiAffinity = []cluster.AffinityTerm{{Key: podclass.LabelHost, Selector: mine}}
	case "near":
		p.Affinity = []cluster.AffinityTerm{{Key: instancetypes.LabelZone, Selector: mine}}
	case "demand":
		p.NodeSelector = map[string]string{instancetypes.LabelCapacityType: instancetypes.OnDemand}
	case "arm":
		p.NodeSelector = map[string]string{instancetypes.LabelArch: "arm64"}
	case "one-zone":
		p.NodeSelector = map[string]string{instancetypes.LabelZone: "us-west-2b"}
	}
	for i := range 1 + r.IntN(24) {
		p.Name = fmt.Sprintf("%s-%d", name, i)
		pods = append(pods, p)
	}
	return pods
}
