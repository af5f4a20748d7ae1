package disruption

import (
	"fmt"
	"math"
	"math/rand/v2"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/binpack"
)

// yard is a cluster in the making: so many nodes of eight types, spot and on-demand, full of the pods of an app for
// every three of them, with selectors, spreads and anti-affinity, of which four in ten have ended since.
type yard struct {
	rand  *rand.Rand
	s     cluster.Snapshot
	types []instancetypes.Type // that nodes have
	apps  []*app
}

// app is pods that are alike.
type app struct {
	pod   cluster.Pod
	alone bool           // one on each node at most
	zones map[string]int // if it spreads: pods by zone
	made  int
}

const yardSeed = 1

// crowded makes the cluster. Equal arguments give equal clusters.
func crowded(b testing.TB, nodes int) cluster.Snapshot {
	b.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		b.Fatal(err)
	}
	generation, err := requirements.NewRequirement("karpenter.k8s.aws/instance-generation", requirements.Gt, "2")
	if err != nil {
		b.Fatal(err)
	}
	class := instancetypes.DefaultClass(c)
	y := yard{rand: rand.New(rand.NewPCG(yardSeed, uint64(nodes))), s: cluster.Snapshot{
		Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Catalog: c, Classes: []instancetypes.Class{class}, Namespaces: []cluster.Namespace{{Name: "default"}},
		Pools: []cluster.Pool{{Name: "general", Class: class.Name, Ready: true, Requirements: requirements.NewSet(
			requirements.Of("karpenter.k8s.aws/instance-category", "c", "m", "r"), requirements.Of(corev1.LabelOSStable, "linux"),
			requirements.Of(v1.LabelCapacityType, instancetypes.Spot, instancetypes.OnDemand), generation,
		), Disruption: cluster.Disruption{Policy: string(v1.ConsolidationWhenEmptyOrUnderutilized), Budgets: []cluster.NodeBudget{{Every: true, Nodes: "10%"}}}}},
		Daemons: []cluster.Pod{{Namespace: "kube-system", Name: "agent", Owner: cluster.OwnerDaemonSet, Need: resources.List{CPU: 200, Memory: 400 * resources.MiB, Pods: 1},
			Tolerations: []cluster.Toleration{{Operator: "Exists"}}}},
	}}
	for _, t := range instancetypes.ResolveTypes(c, class, nil, y.s.Now) {
		switch t.Name {
		case "m6a.2xlarge", "m6i.4xlarge", "c6i.4xlarge", "c7g.2xlarge", "r6g.2xlarge", "m7g.4xlarge", "m5.8xlarge", "m6a.8xlarge":
			y.types = append(y.types, t)
		}
	}
	for i := range max(6, nodes/3) {
		y.apps = append(y.apps, y.app(i))
	}
	for i := range nodes {
		y.node(i)
	}
	return y.s
}

func (y *yard) app(i int) *app {
	chance := func(percent int) bool { return y.rand.IntN(100) < percent }
	around := func(mean float64) float64 { return math.Exp(y.rand.NormFloat64()*0.8 + math.Log(mean)) }
	name := fmt.Sprintf("app-%03d", i)
	mine := &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", name)}}
	a := &app{pod: cluster.Pod{Namespace: "default", Name: name, Owner: "ReplicaSet", Phase: "Running", Ready: true, Labels: map[string]string{"app": name},
		NodeSelector: map[string]string{}, Created: y.s.Now.Add(-12 * time.Hour), Need: resources.List{Pods: 1,
			CPU: int64(min(6000, max(50, around(450)))) / 10 * 10, Memory: int64(min(24<<10, max(64, around(1100)))) / 16 * 16 * resources.MiB}}}
	switch {
	case chance(25):
		a.pod.NodeSelector[corev1.LabelArchStable] = "amd64"
	case chance(10):
		a.pod.NodeSelector[corev1.LabelArchStable] = "arm64"
	}
	if chance(25) {
		a.pod.NodeSelector[v1.LabelCapacityType] = instancetypes.OnDemand
	}
	switch {
	case chance(8):
		a.pod.NodeSelector[corev1.LabelTopologyZone] = []string{"us-west-2a", "us-west-2b", "us-west-2c"}[y.rand.IntN(3)]
	case chance(15):
		a.pod.Spread = []cluster.Spread{{Key: corev1.LabelTopologyZone, MaxSkew: 2, Selector: mine}}
		a.zones = map[string]int{}
	}
	if a.alone = chance(5); a.alone {
		a.pod.AntiAffinity = []cluster.AffinityTerm{{Key: corev1.LabelHostname, Selector: mine}}
	}
	return a
}

// node adds a node that is full of pods, and takes four of ten of them away.
func (y *yard) node(i int) {
	t := y.types[y.rand.IntN(len(y.types))]
	sale := []string{instancetypes.OnDemand, instancetypes.Spot}[y.rand.IntN(2)]
	var zones []string
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType == sale {
			zones = append(zones, o.Zone)
		}
	}
	n := y.addNode(i, t, sale, zones[y.rand.IntN(len(zones))])
	y.fill(n, t.Allocatable.Sub(y.s.Daemons[0].Need))
}

// addNode adds a node of the type, with its NodeClaim.
func (y *yard) addNode(i int, t instancetypes.Type, sale, zone string) cluster.Node {
	name, since := fmt.Sprintf("node-%05d", i), y.s.Now.Add(-12*time.Hour)
	labels := t.Requirements.Labels()
	for k, v := range map[string]string{corev1.LabelTopologyZone: zone, v1.LabelCapacityType: sale, v1.LabelNodePool: "general", corev1.LabelInstanceTypeStable: t.Name,
		corev1.LabelHostname: name, v1.LabelRegistered: "true", v1.LabelInitialized: "true"} {
		labels[k] = v
	}
	n := cluster.Node{Name: name, ProviderID: "aws:///" + name, Created: since, Labels: labels, Capacity: t.Capacity, Allocatable: t.Allocatable, Ready: true, ReadySince: since, Finalizer: true}
	claim := cluster.Claim{Name: name, Pool: "general", Class: y.s.Classes[0].Name, Created: since, Finalizer: true, Labels: labels, ProviderID: n.ProviderID, NodeName: name,
		Capacity: t.Capacity, Allocatable: t.Allocatable}
	for _, k := range []string{v1.ConditionInitialized, v1.ConditionLaunched, v1.ConditionRegistered} {
		claim.Conditions = append(claim.Conditions, cluster.Condition{Type: k, Status: "True", Since: since})
	}
	y.s.Nodes, y.s.Claims = append(y.s.Nodes, n), append(y.s.Claims, claim)
	return n
}

// fill puts pods onto the node until twenty in a row did not go.
func (y *yard) fill(n cluster.Node, free resources.List) {
	zone := n.Labels[corev1.LabelTopologyZone]
	here := map[*app]bool{}
	node := simulator.NewNode(n.Name, n.Labels, nil, resources.List{}, resources.List{})
	for misses := 0; misses < 20; misses++ {
		a := y.apps[y.rand.IntN(len(y.apps))]
		if !a.pod.Need.FitsIn(free) || !node.SelectedBy(&a.pod) || a.alone && here[a] || a.zones != nil && a.crowds(zone) {
			continue
		}
		misses, here[a] = -1, true
		free = free.Sub(a.pod.Need)
		if a.zones != nil {
			a.zones[zone]++
		}
		p := a.pod
		p.Name, p.NodeName = fmt.Sprintf("%s-%05d", p.Name, a.made), n.Name
		p.UID = p.Name
		if a.made++; y.rand.IntN(10) >= 4 {
			y.s.Pods = append(y.s.Pods, p)
		}
	}
}

// crowds reports whether one more pod in the zone is more than the spread allows.
func (a *app) crowds(zone string) bool {
	least := math.MaxInt
	for _, z := range []string{"us-west-2a", "us-west-2b", "us-west-2c", "us-west-2d"} {
		least = min(least, a.zones[z])
	}
	return a.zones[zone]+1-least > 2
}

// passes measures what one pass takes about a cluster that nobody has looked at before, everything but reading it.
func passes(b *testing.B, nodes int) {
	s := crowded(b, nodes)
	b.ReportAllocs()
	saves, before := 0.0, spent(b)
	for b.Loop() {
		p, _ := Next(s, Memory{}, binpack.ResolveOfferings(s))
		if len(p.Proposed) == 0 {
			b.Fatal("nothing is proposed")
		}
		saves = p.Proposed[0].SavesUSD
	}
	b.ReportMetric(saves, "USD/h")
	b.ReportMetric((spent(b)-before)/float64(b.N), "cpu-s/op")
}

// spent are the seconds of CPU that the program had, which a busy machine changes less than the time on the clock.
func spent(b *testing.B) float64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
}

func BenchmarkPass50(b *testing.B)   { passes(b, 50) }
func BenchmarkPass500(b *testing.B)  { passes(b, 500) }
func BenchmarkPass2000(b *testing.B) { passes(b, 2000) }
