package whatif

import (
	"slices"
	"testing"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/manypods"
)

// manyNodes are 500 nodes with pods, of a pool with a taint that the pod default/lost does not tolerate.
func manyNodes(b *testing.B) (cluster.Snapshot, binpack.Offerings) {
	s := manypods.PartlyFree(b, 15_000, 500)
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	lost := s.Pods[0]
	lost.Name, lost.NodeName, lost.Phase, lost.Unscheduled = "lost", "", "Pending", true
	lost.Need.CPU = 3000
	lost.NodeSelector = map[string]string{"team": "blue", "kubernetes.io/arch": "amd64"}
	s.Pods = append(s.Pods, lost)
	s.Pools = slices.Clone(s.Pools)
	for i := range s.Pools {
		s.Pools[i].Taints = []cluster.Taint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
	}
	return s, binpack.ResolveOfferings(s)
}

func BenchmarkForPod(b *testing.B) {
	s, sells := manyNodes(b)
	for b.Loop() {
		a := ForPod(s, sells, s.Pods[len(s.Pods)-1].Key(), Limits{})
		b.ReportMetric(float64(a.Questions), "questions")
		b.ReportMetric(float64(len(a.Changes)), "changes")
	}
}

func BenchmarkForNode(b *testing.B) {
	s, sells := manyNodes(b)
	s.Pods = s.Pods[:len(s.Pods)-1]
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.ProviderID, n.Ready = "aws:///"+n.Name, true
		n.Labels[v1.LabelNodePool], n.Labels[v1.LabelRegistered], n.Labels[v1.LabelInitialized] = s.Pools[0].Name, "true", "true"
		s.Claims = append(s.Claims, cluster.Claim{Name: "c-" + n.Name, Pool: s.Pools[0].Name, Class: s.Pools[0].Class, ProviderID: n.ProviderID,
			NodeName: n.Name, Labels: n.Labels, Capacity: n.Capacity, Allocatable: n.Allocatable, Requirements: requirements.FromLabels(nil),
			Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}})
	}
	for i := range s.Pools {
		s.Pools[i].Taints = nil
		s.Pools[i].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "0"}}}
	}
	for b.Loop() {
		a := ForNode(s, disruption.Memory{}, sells, s.Claims[0].Name, Limits{})
		b.ReportMetric(float64(a.Questions), "questions")
		b.ReportMetric(float64(len(a.Changes)), "changes")
	}
}
