package whatif

import (
	"maps"
	"slices"
	"syscall"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/manypods"
)

// manyNodes are 500 nodes with 4,667 pods, and three NodePools that may launch nearly everything.
func manyNodes(b testing.TB) cluster.Snapshot {
	s := manypods.PartlyFree(b, 15_000, 500)
	s.Pods = slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	s.Pools = []cluster.Pool{s.Pools[0], s.Pools[0], s.Pools[0]}
	for i := range s.Pools {
		s.Pools[i].Name = []string{"default", "batch", "db"}[i]
	}
	for i := range s.Nodes {
		n := &s.Nodes[i]
		n.ProviderID, n.Ready = "aws:///"+n.Name, true
		n.Labels[v1.LabelNodePool], n.Labels[v1.LabelRegistered], n.Labels[v1.LabelInitialized] = s.Pools[i%3].Name, "true", "true"
		s.Claims = append(s.Claims, cluster.Claim{Name: "c-" + n.Name, Pool: s.Pools[i%3].Name, Class: s.Pools[0].Class, ProviderID: n.ProviderID,
			NodeName: n.Name, Labels: n.Labels, Capacity: n.Capacity, Allocatable: n.Allocatable, Requirements: requirements.FromLabels(nil),
			Conditions: []cluster.Condition{{Type: v1.ConditionInitialized, Status: "True"}}})
	}
	return s
}

// reasons are changes of the cluster and of a pod that would have a node, for each of which it has none.
func reasons() map[string]func(s *cluster.Snapshot, p *cluster.Pod) {
	pools := func(s *cluster.Snapshot, change func(p *cluster.Pool)) {
		s.Pools = slices.Clone(s.Pools)
		for i := range s.Pools {
			change(&s.Pools[i])
		}
	}
	require := func(s *cluster.Snapshot, r requirements.Requirement) {
		pools(s, func(p *cluster.Pool) { p.Requirements = p.Requirements.And(r) })
	}
	large := func(p *cluster.Pod) { p.Need.CPU = 31_000 }
	self := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "lost")}}
	return map[string]func(s *cluster.Snapshot, p *cluster.Pod){
		"taint": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			pools(s, func(p *cluster.Pool) {
				p.Taints = []cluster.Taint{{Key: "dedicated", Value: "x", Effect: "NoSchedule"}}
			})
		},
		"selector": func(_ *cluster.Snapshot, p *cluster.Pod) { p.NodeSelector = map[string]string{"team": "blue"} },
		"affinity": func(_ *cluster.Snapshot, p *cluster.Pod) {
			p.NodeAffinity = [][]requirements.Requirement{{requirements.Of("tier", "premium")}, {requirements.Of(instancetypes.LabelZone, "nowhere")}}
		},
		"request":  func(_ *cluster.Snapshot, p *cluster.Pod) { p.Need.CPU, p.Need.Memory = 600_000, 700*1024*resources.MiB },
		"resource": func(_ *cluster.Snapshot, p *cluster.Pod) { p.Need = p.Need.With("example.com/fuse", 1) },
		"requirement": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			require(s, requirements.Of("karpenter.k8s.aws/instance-size", "large"))
		},
		"two": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			p.NodeSelector = map[string]string{"team": "blue", "rack": "1"}
		},
		"limit": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			pools(s, func(p *cluster.Pool) { p.Limits, p.Limited = resources.List{CPU: 1000}, []string{"cpu"} })
		},
		"ceiling": func(s *cluster.Snapshot, p *cluster.Pod) { large(p); s.Rules.Ceiling.Nodes = len(s.Nodes) },
		"minValues": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			p.NodeSelector = map[string]string{instancetypes.LabelZone: "us-west-2a"}
			zones := requirements.Of(instancetypes.LabelZone, "us-west-2a", "us-west-2b")
			zones.MinValues = 2
			require(s, zones)
		},
		"spread": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			p.NodeSelector = map[string]string{instancetypes.LabelZone: "us-west-2a"}
			p.Spread = []cluster.Spread{{Key: instancetypes.LabelZone, MaxSkew: 1, Selector: self}}
			for i, n := range s.Nodes[:4] { // one in each zone
				old := *p
				old.Name, old.NodeName, old.Phase, old.Unscheduled = "kept-"+n.Name, n.Name, "Running", false
				if old.Need.CPU = 10; i == 1 {
					s.Pods[0] = old
				}
			}
		},
		"apart": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			p.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/os", Selector: &cluster.Selector{}}}
		},
		"near": func(_ *cluster.Snapshot, p *cluster.Pod) {
			p.Affinity = []cluster.AffinityTerm{{Key: instancetypes.LabelZone, Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "none")}}}}
		},
		"volume": func(_ *cluster.Snapshot, p *cluster.Pod) {
			p.VolumeZones = [][]requirements.Requirement{{requirements.Of(instancetypes.LabelZone, "us-west-2z")}}
		},
		"class": func(s *cluster.Snapshot, p *cluster.Pod) {
			large(p)
			s.Classes = slices.Clone(s.Classes)
			s.Classes[0].Ready, s.Classes[0].Message = false, "no subnets"
		},
	}
}

// lostIn is the cluster with a pod that gets no node, for a reason.
func lostIn(s cluster.Snapshot, reason func(*cluster.Snapshot, *cluster.Pod)) (cluster.Snapshot, string) {
	s.Pods, s.Pools = slices.Clone(s.Pods), slices.Clone(s.Pools)
	lost := s.Pods[0]
	lost.Name, lost.NodeName, lost.Phase, lost.Unscheduled, lost.Labels = "lost", "", "Pending", true, map[string]string{"app": "lost"}
	lost.NodeSelector, lost.Spread, lost.AntiAffinity, lost.Need = nil, nil, nil, resources.List{CPU: 3000, Memory: 1024 * resources.MiB, Pods: 1}
	reason(&s, &lost)
	s.Pods = append(s.Pods, lost)
	return s, lost.Key()
}

func BenchmarkForPod(b *testing.B) {
	all, many := reasons(), manyNodes(b)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		b.Run(name, func(b *testing.B) {
			s, key := lostIn(many, all[name])
			sells := binpack.ResolveOfferings(s)
			began := cpuTime(b)
			for b.Loop() {
				a := ForPod(s, sells, key, Limits{})
				b.ReportMetric(float64(a.Questions), "questions")
				b.ReportMetric(float64(len(a.Changes)), "changes")
				b.ReportMetric(float64(a.Unasked), "unasked")
			}
			b.ReportMetric((cpuTime(b)-began)/float64(b.N), "cpu-s/op")
		})
	}
}

func BenchmarkForNode(b *testing.B) {
	s := manyNodes(b)
	for i := range s.Pools {
		s.Pools[i].Disruption = cluster.Disruption{Policy: "WhenEmptyOrUnderutilized", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "0"}}}
	}
	sells := binpack.ResolveOfferings(s)
	began := cpuTime(b)
	for b.Loop() {
		a := ForNode(s, disruption.Memory{}, sells, s.Claims[0].Name, Limits{})
		b.ReportMetric(float64(a.Questions), "questions")
		b.ReportMetric(float64(len(a.Changes)), "changes")
	}
	b.ReportMetric((cpuTime(b)-began)/float64(b.N), "cpu-s/op")
}

// cpuTime is what the process has used of processors, in seconds.
func cpuTime(b *testing.B) float64 {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}
