package world

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/workload"
)

// Kinds of clusters.
const (
	HalfEmpty = "half-empty" // on-demand; half of the pods of every app have gone
	Burst     = "burst"      // spot; a burst had four nodes of ten, and nine of ten of its pods have gone
	Mixed     = "mixed"      // spot and on-demand, a quarter of the apps on-demand only; four pods of ten have gone
	// as half-empty, with PodDisruptionBudgets, some used up, and pods that must not be disrupted
	Guarded = "guarded"
)

// ClusterKinds lists them.
func ClusterKinds() []string { return []string{HalfEmpty, Burst, Mixed, Guarded} }

// nodeTypes are the types that nodes have at first.
func nodeTypes() []string {
	return []string{"m6a.2xlarge", "m6i.4xlarge", "c6i.4xlarge", "c7g.2xlarge", "r6g.2xlarge", "m7g.4xlarge",
		"m5.8xlarge", "m6a.8xlarge"}
}

type generator struct {
	*World
	kind string
	rand *rand.Rand
}

// GenerateWorld makes a cluster of that kind with so many nodes. The same arguments give the same cluster.
func GenerateWorld(c instancetypes.Catalog, kind string, nodes int, seed uint64) (*World, error) {
	if !slices.Contains(ClusterKinds(), kind) {
		return nil, fmt.Errorf("kind %q is none of %s", kind, strings.Join(ClusterKinds(), ", "))
	}
	p, err := nodePools(kind)
	if err != nil {
		return nil, err
	}
	w := New(fmt.Sprintf("%s-%d", kind, nodes), c, p, daemonGroup())
	g := generator{w, kind, rand.New(rand.NewPCG(seed, uint64(nodes)))}
	apps := g.drawApps("app", max(6, nodes/3))
	burst := g.drawApps("burst", max(2, nodes/10))
	for i := range nodes {
		n, err := g.launchNode()
		if err != nil {
			return nil, err
		}
		if kind == Burst && i%10 < 4 {
			g.fillNode(n, burst)
		} else {
			g.fillNode(n, apps)
		}
	}
	g.guardApps(apps)
	g.scaleDown()
	return w, nil
}

// scaleDown takes pods away, as users do who scale apps down.
func (g generator) scaleDown() {
	g.DeletePods(func(p *Pod) bool {
		chance := map[string]float64{HalfEmpty: 0.5, Guarded: 0.5, Mixed: 0.4}[g.kind]
		if g.kind == Burst && strings.HasPrefix(p.App, "burst") {
			chance = 0.9
		}
		return g.rand.Float64() < chance
	})
}

func (g generator) launchNode() (*Node, error) {
	names := nodeTypes()
	t := g.types[names[g.rand.IntN(len(names))]]
	sale := map[string]string{HalfEmpty: instancetypes.OnDemand, Guarded: instancetypes.OnDemand,
		Burst: instancetypes.Spot}[g.kind]
	if sale == "" {
		sale = []string{instancetypes.OnDemand, instancetypes.Spot}[g.rand.IntN(2)]
	}
	var offerings []instancetypes.OfferingKey
	for _, o := range t.Offerings {
		if o.Available && o.CapacityType == sale && o.Price > 0 {
			offerings = append(offerings, o.OfferingKey)
		}
	}
	if len(offerings) == 0 {
		return nil, fmt.Errorf("%s is not sold as %s", t.Name, sale)
	}
	return g.LaunchNode("general", offerings[g.rand.IntN(len(offerings))])
}

// app is a service; its pods are alike.
type app struct {
	name  string
	spec  corev1.PodSpec
	count int
}

func (g generator) drawApps(prefix string, count int) []*app {
	var out []*app
	for i := range count {
		a := &app{name: fmt.Sprintf("%s-%03d", prefix, i)}
		cpu := min(6000, max(50, int(math.Exp(g.rand.NormFloat64()*0.8+math.Log(450)))/10*10))
		memory := min(24<<10, max(64, int(math.Exp(g.rand.NormFloat64()*0.8+math.Log(1100)))/16*16))
		a.spec = corev1.PodSpec{NodeSelector: map[string]string{},
			Containers: []corev1.Container{{Name: "app", Image: "app",
				Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{
					corev1.ResourceCPU:    resource.MustParse(fmt.Sprintf("%dm", cpu)),
					corev1.ResourceMemory: resource.MustParse(fmt.Sprintf("%dMi", memory)),
				}}}}}
		g.constrainApp(a)
		out = append(out, a)
	}
	return out
}

func (g generator) constrainApp(a *app) {
	chance := func(p int) bool { return g.rand.IntN(100) < p }
	mine := &metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
	switch {
	case chance(25):
		a.spec.NodeSelector[corev1.LabelArchStable] = "amd64"
	case chance(10):
		a.spec.NodeSelector[corev1.LabelArchStable] = "arm64"
	}
	if g.kind == Mixed && chance(25) {
		a.spec.NodeSelector[api.LabelCapacityType] = instancetypes.OnDemand
	}
	switch {
	case chance(8):
		a.spec.NodeSelector[corev1.LabelTopologyZone] = []string{"us-west-2a", "us-west-2b",
			"us-west-2c"}[g.rand.IntN(3)]
	case chance(15):
		a.spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{MaxSkew: 2,
			TopologyKey:       corev1.LabelTopologyZone,
			WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: mine}}
	}
	if chance(5) {
		a.spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{{LabelSelector: mine,
				TopologyKey: corev1.LabelHostname}}}}
	}
}

// fillNode puts pods of the apps on the node until twenty in a row did not go.
func (g generator) fillNode(n *Node, apps []*app) {
	for misses := 0; misses < 20; {
		a := apps[g.rand.IntN(len(apps))]
		p := g.newPod(a)
		rules := g.zonesFor(p, g.SortedNodes())
		if !hasRoom(p.Need, n.free) || !g.allowsPod(n, p) || rules != nil && !rules[n.OfferingKey.Zone] {
			misses++
			continue
		}
		misses, a.count = 0, a.count+1
		g.AddPod(p, n.Name)
	}
}

func (g generator) newPod(a *app) *Pod {
	name := fmt.Sprintf("%s-%05d", a.name, a.count)
	yes := true
	o := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name,
			UID: types.UID(workload.PodUID("default", name)), Labels: map[string]string{"app": a.name},
			CreationTimestamp: metav1.NewTime(g.Now.Add(-12 * time.Hour)),
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: a.name,
				UID: types.UID("rs-" + a.name), Controller: &yes}}},
		Spec: a.spec,
	}
	return &Pod{Object: o, Need: needOf(a.spec), App: a.name}
}

// guardApps gives a fifth of the apps a budget, one in eight of which is used up, and lets one pod of two hundred
// forbid it itself.
func (g generator) guardApps(apps []*app) {
	if g.kind != Guarded {
		return
	}
	held := map[string]bool{}
	for i, a := range apps {
		if i%5 != 0 {
			continue
		}
		b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: a.name}}
		one := intstr.FromInt32(1)
		b.Spec.MaxUnavailable, b.Spec.Selector = &one,
			&metav1.LabelSelector{MatchLabels: map[string]string{"app": a.name}}
		if b.Status.DisruptionsAllowed = 1; i%40 == 20 {
			b.Status.DisruptionsAllowed, held[a.name] = 0, true
		}
		g.Budgets = append(g.Budgets, b)
	}
	for _, p := range g.Pods {
		p.Held = held[p.App]
		if g.rand.IntN(1000) < 5 {
			p.Held = true
			p.Object.Annotations = map[string]string{api.AnnotationDoNotDisrupt: "true"}
		}
	}
}

func daemonGroup() workload.PodGroup {
	g := workload.PodGroup{Name: "agent"}
	g.Pod.Namespace, g.Pod.Labels = "kube-system", map[string]string{"app": "agent"}
	g.Pod.Spec = corev1.PodSpec{Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
		Containers: []corev1.Container{{Name: "agent", Image: "agent",
			Resources: corev1.ResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("200m"),
					corev1.ResourceMemory: resource.MustParse("400Mi")}}}}}
	return g
}

// BudgetPercent of the nodes may be disrupted at a time, Karpenter's default.
const BudgetPercent = 10

// pool is the NodePool.
const pool = `
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general, uid: pool-general}
spec:
  disruption: {consolidationPolicy: WhenEmptyOrUnderutilized, consolidateAfter: 0s, budgets: [{nodes: %d%%}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
      requirements:
      - {key: kubernetes.io/os, operator: In, values: [linux]}
      - {key: kubernetes.io/arch, operator: In, values: [amd64, arm64]}
      - {key: karpenter.sh/capacity-type, operator: In, values: [%s]}
      - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m, r]}
      - {key: karpenter.k8s.aws/instance-generation, operator: Gt, values: ["2"]}
`

func nodePools(kind string) ([]api.NodePool, error) {
	sales := "spot, on-demand"
	if kind == HalfEmpty || kind == Guarded {
		sales = "on-demand"
	}
	m, err := workload.ParseManifests(fmt.Appendf(nil, pool, BudgetPercent, sales))
	return m.Pools, err
}
