package binpack

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/testing/plancheck"
)

// partitioned is a cluster with one instance type of the real catalog, in a placement group of three partitions, and
// waiting pods.
func partitioned(t *testing.T, pods ...cluster.Pod) cluster.Snapshot {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	c.Types = slices.DeleteFunc(c.Types, func(f instancetypes.Facts) bool { return f.Name != "m5.large" })
	class := instancetypes.DefaultClass(c)
	class.Placement = &instancetypes.Placement{ID: "pg-1", Name: "p", Strategy: "partition", Partitions: 3}
	return cluster.Snapshot{Catalog: c, Classes: []instancetypes.Class{class}, Pods: pods, Pools: []cluster.Pool{{
		Name: "default", Class: "default", Ready: true,
		Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelCapacityType, instancetypes.OnDemand)),
	}}}
}

func smallPod(name string, change func(*cluster.Pod)) cluster.Pod {
	p := cluster.Pod{Namespace: "default", Name: name, Phase: "Pending", Unscheduled: true, Labels: map[string]string{"app": "x"}, Need: resources.List{CPU: 100, Pods: 1}}
	change(&p)
	return p
}

// What every instance type of EC2 has several values of keeps two pods apart that do not agree about it, and nobody
// else.
func TestLabelsOfWhichTypesHaveSeveralValues(t *testing.T) {
	mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "x")}}
	for key, values := range map[string][2]string{instancetypes.LabelTenancy: {"dedicated", "default"}, instancetypes.LabelPartition: {"1", "2"}} {
		wants := func(v string) func(*cluster.Pod) {
			return func(p *cluster.Pod) { p.NodeSelector = map[string]string{key: v} }
		}
		spreads := func(p *cluster.Pod) { p.Spread = []cluster.Spread{{Key: key, MaxSkew: 1, Selector: mine}} }
		apart := func(p *cluster.Pod) { p.AntiAffinity = []cluster.AffinityTerm{{Key: key, Selector: mine}} }
		near := func(p *cluster.Pod) { p.Affinity = []cluster.AffinityTerm{{Key: key, Selector: mine}} }
		other := func(p *cluster.Pod) { p.Labels = nil }
		for _, c := range []struct {
			name  string
			pods  []cluster.Pod
			nodes int
		}{
			{"they differ", []cluster.Pod{smallPod("a", wants(values[0])), smallPod("b", wants(values[1])), smallPod("c", other)}, 2},
			{"they agree", []cluster.Pod{smallPod("a", wants(values[0])), smallPod("b", wants(values[0])), smallPod("c", other)}, 1},
			{"they spread", []cluster.Pod{smallPod("a", spreads), smallPod("b", spreads), smallPod("c", other)}, 2},
			{"they keep apart", []cluster.Pod{smallPod("a", apart), smallPod("b", apart)}, 2},
			{"they gather", []cluster.Pod{smallPod("a", near), smallPod("b", near)}, 1},
		} {
			s := partitioned(t, c.pods...)
			p := Pods(s)
			if len(p.Launches) != c.nodes || len(p.Unplaced) > 0 {
				t.Errorf("%s about %s: want %d nodes and nobody without one:\n%s", c.name, key, c.nodes, p)
			}
			for _, fault := range plancheck.CheckPlan(plancheck.World{Snapshot: s, Sells: ResolveOfferings(s)}, p) {
				t.Errorf("%s about %s: %s", c.name, key, fault)
			}
		}
	}
}

// A pod that asks for a GPU gets a part of one only where its NodePool names types or families, or how much memory a GPU
// has: whoever asks for nothing but one GPU means a whole one, and a part is cheaper.
func TestPartsOfAGPU(t *testing.T) {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	memory := int64(2861)
	for name, x := range map[string]struct {
		asks requirements.Requirement
		want string // a prefix
	}{
		"category":      {requirements.Of(instancetypes.LabelCategory, "g"), "g5g."},
		"GPU":           {requirements.Of(instancetypes.LabelGPUName, "l4"), "g6."},
		"not a family":  {requirements.Requirement{Key: instancetypes.LabelFamily, Not: true, Values: []string{"g4dn"}}, "g5g."},
		"family":        {requirements.Of(instancetypes.LabelFamily, "g6f", "g6"), "g6f."},
		"type":          {requirements.Of(corev1.LabelInstanceTypeStable, "g6f.xlarge"), "g6f."},
		"memory":        {requirements.Of(instancetypes.LabelGPUMemory, "2861"), "g6f."},
		"least memory":  {requirements.Requirement{Key: instancetypes.LabelGPUMemory, Not: true, Min: &memory}, "g6f."},
		"no GPU at all": {requirements.Of(instancetypes.LabelCategory, "m"), ""},
	} {
		gpu := smallPod("p", func(p *cluster.Pod) {
			p.Need.Extended = []resources.Extended{{Name: instancetypes.ResourceNVIDIA, Count: 1}}
		})
		s := cluster.Snapshot{Catalog: c, Classes: []instancetypes.Class{instancetypes.DefaultClass(c)}, Pods: []cluster.Pod{gpu},
			Pools: []cluster.Pool{{Name: "default", Class: "default", Ready: true, Requirements: requirements.NewSet(x.asks,
				requirements.Of(instancetypes.LabelCapacityType, instancetypes.OnDemand))}}}
		got := ""
		for _, l := range Pods(s).Launches {
			got = l.Choice.Type
		}
		if !strings.HasPrefix(got, x.want) || x.want == "" && got != "" {
			t.Errorf("%s: %q, want %s", name, got, x.want)
		}
	}
}
