package report_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/scheduling/report"
	"joiner.sh/pkg/scheduling/search"
	"joiner.sh/pkg/testing/manypods"
	"joiner.sh/pkg/testing/scenario"
)

// What pods do not want of labels that no node has is not asked of the NodeClaim where it is much: the API server takes
// 100 requirements, and others are to be on the node.
func TestMostRequirementsOfANodeClaim(t *testing.T) {
	for n, want := range map[int]bool{10: true, 150: false} {
		s := manypods.Services(t, 0)
		s.Rules.PackingIterations = cluster.NoIterations
		s.Pods = slices.Concat(manypods.Services(t, 3).Pods, manypods.Hostile("sizes", 1))
		var term []requirements.Requirement
		for i := range n {
			r, err := requirements.NewRequirement(fmt.Sprintf("example.com/k%d", i), requirements.NotIn, "x")
			if err != nil {
				t.Fatal(err)
			}
			term = append(term, r)
		}
		s.Pods[len(s.Pods)-1].NodeAffinity = [][]requirements.Requirement{term}
		types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
		p := solve(s, func(string) []instancetypes.Type { return types })
		if len(p.Unplaced) > 0 || len(p.Launches) == 0 {
			t.Fatalf("%d keys: %v", n, p)
		}
		asked := false
		for _, l := range p.Launches {
			_, has := l.Requirements.Get("example.com/k0")
			if asked = asked || has; len(l.Requirements.All()) > 100 {
				t.Errorf("%d keys: %d requirements", n, len(l.Requirements.All()))
			}
		}
		if asked != want {
			t.Errorf("%d keys: asked of the NodeClaim is %t", n, asked)
		}
	}
}

// Should a mistake ever put pods together that no node suits, those are without a place, and the others have theirs.
func TestANodeThatNothingCanBe(t *testing.T) {
	w, err := scenario.FromText([]string{
		"type m5.large cpu=2000 mem=8192 milliusd=96\nlabel tenancy default dedicated", "pool default", "pods innocent cpu=2000 mem=100",
		"pods a cpu=100 mem=100\nselect tenancy=dedicated", "pods b cpu=100 mem=100\nselect tenancy=default",
	})
	if err != nil {
		t.Fatal(err)
	}
	pr := packing.NewProblem(w.Snapshot, w.Market)
	s := pr.Pack(packing.Strategy{Prices: prices.NewPricing(pr), NodeCost: 0.0002})
	from := slices.IndexFunc(s.Bins, func(b *capacity.Bin) bool {
		return slices.ContainsFunc(b.Load, func(l capacity.PodLoad) bool { return l.Pods[0] == "default/a-1" })
	})
	to := slices.IndexFunc(s.Bins, func(b *capacity.Bin) bool {
		return slices.ContainsFunc(b.Load, func(l capacity.PodLoad) bool { return l.Pods[0] == "default/b-1" })
	})
	if from < 0 || to < 0 || from == to {
		t.Fatalf("a is on %d, b on %d of %d nodes", from, to, len(s.Bins))
	}
	s.Bins[to].Load = append(s.Bins[to].Load, s.Bins[from].Load...)
	s.Bins = slices.Delete(s.Bins, from, from+1)
	launches := (&report.PlanWriter{Solution: s}).PlanLaunches()
	if len(launches) != 1 || !slices.Equal(launches[0].Pods, []string{"default/innocent-1"}) {
		t.Errorf("the innocent alone gets a node, not %v", launches)
	}
	var homeless []string
	for _, u := range (report.Explainer{Solution: s}).ExplainUnplaced() {
		if homeless = append(homeless, u.Pod); !strings.Contains(u.Message(), "planned for the same node") {
			t.Errorf("%s: %s", u.Pod, u.Message())
		}
	}
	if !slices.Equal(slices.Sorted(slices.Values(homeless)), []string{"default/a-1", "default/b-1"}) {
		t.Errorf("without a place are %v", homeless)
	}
}

// A claim for a new node names the DRA drivers whose devices its pods claim, and no others.
func TestLaunchesNameDRADrivers(t *testing.T) {
	w := scenario.Scripted(t, "type p cpu=8000 mem=16384 milliusd=900\nresource nvidia.com/gpu 2\nresource vpc.amazonaws.com/efa 4", "pool default",
		"pods train cpu=7000 mem=100\nresource deviceclass.resource.kubernetes.io/gpu 2\nresource deviceclass.resource.kubernetes.io/efa 4", "pods plain cpu=7000 mem=100",
		"pods all cpu=7000 mem=100\nresource all-devices.joiner.sh/gpu 1000", "pods many cpu=100 mem=100\nresource deviceclass.resource.kubernetes.io/gpu 3")
	w.Snapshot.Devices = cluster.Devices{Known: true, Classes: []cluster.DeviceClass{
		{Resource: "deviceclass.resource.kubernetes.io/gpu", Name: "gpu", Driver: "gpu.nvidia.com", CountedBy: "nvidia.com/gpu"},
		{Resource: "all-devices.joiner.sh/gpu", Name: "gpu", Driver: "gpu.nvidia.com", CountedBy: "nvidia.com/gpu"},
		{Resource: "deviceclass.resource.kubernetes.io/efa", Name: "efa", Driver: "dra.net", CountedBy: "vpc.amazonaws.com/efa"}}}
	p := solve(w.Snapshot, w.Market)
	got := map[string]string{}
	for _, l := range p.Launches {
		got[l.Pods[0]] = l.Annotations["karpenter.sh/requested-dra-drivers"]
	}
	if len(got) != 3 || got["default/train-1"] != "dra.net,gpu.nvidia.com" || got["default/plain-1"] != "" || got["default/all-1"] != "gpu.nvidia.com" {
		t.Errorf("drivers by pod %q", got)
	}
	if len(p.Unplaced) != 1 || p.Unplaced[0].Pod != "default/many-1" {
		t.Errorf("unplaced %+v, want the pod that claims more devices than a type has", p.Unplaced)
	}
}

func solve(s cluster.Snapshot, sells func(class string) []instancetypes.Type) plan.Plan {
	return search.SolveProblem(packing.NewProblem(s, sells))
}
