package main

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// dice makes a random scenario.
type dice struct {
	*rand.Rand
	now   time.Time
	types map[string]instancetypes.Type
	names []string // of types
	zones []string
	s     *scenario
	calm  bool // most nodes are in service and may go: there is more to decide
}

// familiesSold are the types of the scenarios: enough of them that spot may be replaced by spot.
const familiesSold = "c5 c6i c6g m5 m6i m6g r5 r6g"

// sizesSold are their sizes.
const sizesSold = "large xlarge 2xlarge 4xlarge"

// smallCatalog leaves the catalog the types of the scenarios.
func smallCatalog(c instancetypes.Catalog) instancetypes.Catalog {
	c.Types = slices.DeleteFunc(slices.Clone(c.Types), func(f instancetypes.Facts) bool {
		family, size, _ := strings.Cut(f.Name, ".")
		return !slices.Contains(strings.Fields(familiesSold), family) ||
			!slices.Contains(strings.Fields(sizesSold), size)
	})
	return c
}

// generateScenario makes the scenario of the seed.
func generateScenario(c instancetypes.Catalog, seed uint64) *scenario {
	start := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) // a Monday
	d := &dice{Rand: rand.New(rand.NewPCG(seed, 18)), types: map[string]instancetypes.Type{}, s: &scenario{}}
	d.now = start.Add(time.Duration(d.IntN(14*24*60)) * time.Minute).Add(time.Duration(d.IntN(60)) * time.Second)
	for _, t := range instancetypes.ResolveTypes(c, instancetypes.DefaultClass(c), nil, d.now) {
		d.types[t.Name] = t
		d.names = append(d.names, t.Name)
	}
	for _, o := range d.types[d.names[0]].Offerings {
		if !slices.Contains(d.zones, o.Zone) {
			d.zones = append(d.zones, o.Zone)
		}
	}
	d.s.Now, d.s.BestEffort = metav1.NewTime(d.now), d.oneIn(6)
	d.calm = d.oneIn(3)
	for i := range 1 + d.IntN(3) {
		d.s.Pools = append(d.s.Pools, d.drawPool(fmt.Sprintf("pool-%d", i)))
	}
	for i := range d.IntN(3) {
		d.s.DaemonSets = append(d.s.DaemonSets, d.daemonSet(fmt.Sprintf("agent-%d", i)))
	}
	nodes := 1 + d.IntN(7)
	if d.calm {
		nodes += 2
	}
	for i := range nodes {
		d.addNode(i)
	}
	for i := range d.IntN(2) * d.IntN(3) {
		d.s.Pods = append(d.s.Pods, d.waitingPod(i))
	}
	for i := range d.IntN(2) * d.IntN(4) {
		d.s.Budgets = append(d.s.Budgets, d.drawBudget(fmt.Sprintf("pdb-%d", i)))
	}
	return d.s
}

// oneIn is true once in n times.
func (d *dice) oneIn(n int) bool { return d.IntN(n) == 0 }

func pickOne[T any](d *dice, from ...T) T { return from[d.IntN(len(from))] }

func (d *dice) timeAgo(longest time.Duration) metav1.Time {
	return metav1.NewTime(d.now.Add(-time.Duration(d.Int64N(int64(longest)))).Truncate(time.Second))
}

func (d *dice) drawPool(name string) api.NodePool {
	p := api.NodePool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: uidOf("pool", name),
		CreationTimestamp: metav1.NewTime(d.now.AddDate(0, -1, 0)), Generation: 1}}
	t := &p.Spec.Template
	t.Spec.NodeClassRef = &api.NodeClassReference{Group: "karpenter.k8s.aws", Kind: "EC2NodeClass", Name: "default"}
	t.Spec.Requirements = append(t.Spec.Requirements,
		inRequirement("kubernetes.io/os", "linux"),
		inRequirement(api.LabelCapacityType, pickOne(d, []string{"on-demand"}, []string{"spot"},
			[]string{"spot", "on-demand"}, []string{"spot", "on-demand"})...))
	if d.oneIn(3) {
		t.Spec.Requirements = append(t.Spec.Requirements,
			inRequirement("karpenter.k8s.aws/instance-category",
				pickOne(d, []string{"c"}, []string{"c", "m"}, []string{"m", "r"})...))
	}
	if d.oneIn(4) {
		t.Spec.Requirements = append(t.Spec.Requirements,
			inRequirement("topology.kubernetes.io/zone", d.zones[d.IntN(len(d.zones))]))
	}
	if d.oneIn(6) {
		r := api.Requirement{Key: pickOne(d, "karpenter.k8s.aws/instance-family", "node.kubernetes.io/instance-type"),
			Operator: corev1.NodeSelectorOpExists}
		n := pickOne(d, 2, 3, 6)
		r.MinValues = &n
		t.Spec.Requirements = append(t.Spec.Requirements, r)
	}
	if d.oneIn(5) {
		t.Spec.Taints = []corev1.Taint{{Key: "dedicated", Value: "x", Effect: corev1.TaintEffectNoSchedule}}
	}
	if d.oneIn(4) {
		t.Labels = map[string]string{"tier": pickOne(d, "web", "db")}
	}
	p.Spec.Weight = pickOne[*int32](d, nil, nil, new(int32(10)), new(int32(50)))
	d.drawDisruption(&p)
	if d.oneIn(6) {
		p.Spec.Replicas = new(int64(d.IntN(4)))
		p.Spec.Weight = nil
		if d.oneIn(2) {
			p.Spec.Limits = api.Limits{"nodes": *resource.NewQuantity(int64(1+d.IntN(5)), resource.DecimalSI)}
		}
	} else if d.oneIn(8) {
		p.Spec.Limits = api.Limits{corev1.ResourceCPU: *resource.NewQuantity(int64(4+d.IntN(60)), resource.DecimalSI)}
	}
	ready := metav1.ConditionTrue
	if d.oneIn(10) {
		ready = metav1.ConditionFalse
	}
	for _, kind := range []string{api.ConditionValidationSucceeded, api.ConditionNodeClassReady, api.ConditionReady} {
		p.Status.Conditions = append(p.Status.Conditions, newCondition(kind, ready, p.CreationTimestamp))
	}
	if d.oneIn(12) {
		p.DeletionTimestamp, p.Finalizers = new(d.timeAgo(time.Hour)), []string{api.FinalizerTermination}
	}
	return p
}

// drawDisruption draws when and how fast nodes of the pool are replaced.
func (d *dice) drawDisruption(p *api.NodePool) {
	x := &p.Spec.Disruption
	x.ConsolidationPolicy = pickOne(d, api.ConsolidationWhenEmpty, api.ConsolidationWhenEmptyOrUnderutilized,
		api.ConsolidationWhenEmptyOrUnderutilized,
		api.ConsolidationWhenEmptyOrUnderutilized, api.ConsolidationBalanced)
	x.ConsolidateAfter = nillableDuration(pickOne(d, "0s", "0s", "30s", "5m", "1h", api.Never))
	p.Spec.Template.Spec.ExpireAfter = nillableDuration(pickOne(d, "720h", "2h", api.Never))
	if d.calm && !d.oneIn(4) {
		x.ConsolidationPolicy, x.ConsolidateAfter = pickOne(d, api.ConsolidationWhenEmptyOrUnderutilized,
			api.ConsolidationBalanced), nillableDuration("0s")
		x.Budgets = []api.Budget{{Nodes: pickOne(d, "100%", "50%", "2")}}
		return
	}
	for range d.IntN(4) {
		b := api.Budget{Nodes: pickOne(d, "0", "1", "2", "3", "10%", "34%", "50%", "100%", "100%")}
		if d.oneIn(2) {
			b.Reasons = []api.DisruptionReason{}
			for _, r := range []api.DisruptionReason{api.DisruptionEmpty, api.DisruptionDrifted,
				api.DisruptionUnderutilized} {
				if d.oneIn(2) {
					b.Reasons = append(b.Reasons, r)
				}
			}
		}
		if d.oneIn(3) {
			b.Schedule = new(pickOne(d, "0 9 * * 1-5", "@daily", "@hourly", "*/10 * * * *", "30 22 * * 6", "0 0 1 * *",
				"0 0 29 2 *"))
			b.Duration = new(api.Duration{Duration: pickOne(d, 5*time.Minute, time.Hour, 8*time.Hour, 30*time.Hour,
				7*24*time.Hour)})
		}
		x.Budgets = append(x.Budgets, b)
	}
}

// drawBudget draws a PodDisruptionBudget.
func (d *dice) drawBudget(name string) policyv1.PodDisruptionBudget {
	b := policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: pickOne(d, "default", "default",
		"default", "other"), Name: name, UID: uidOf("pdb", name)}}
	switch d.IntN(8) {
	case 0: // nil selects nothing
	case 1:
		b.Spec.Selector = &metav1.LabelSelector{} // all
	case 2:
		b.Spec.Selector = &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "app",
			Operator: metav1.LabelSelectorOpIn, Values: []string{"a", "b"}}}}
	default:
		b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": pickOne(d, "a", "b", "c", "d")}}
	}
	b.Status.DisruptionsAllowed = int32(pickOne(d, 0, 0, 1, 2))
	switch d.IntN(6) {
	case 0:
		b.Spec.MaxUnavailable = new(intstr.FromInt32(b.Status.DisruptionsAllowed))
	case 1:
		b.Spec.MinAvailable = new(intstr.FromString("50%"))
	case 2:
		b.Spec.MaxUnavailable = new(intstr.FromString("50%"))
	case 3:
		b.Spec.MinAvailable, b.Status.DisruptionsAllowed = new(intstr.FromString("100%")), 0
	case 4:
		b.Spec.MaxUnavailable, b.Status.DisruptionsAllowed = new(intstr.FromString("0%")), 0
	default:
		b.Spec.MinAvailable = new(intstr.FromInt32(1))
	}
	b.Spec.UnhealthyPodEvictionPolicy = pickOne[*policyv1.UnhealthyPodEvictionPolicyType](d, nil,
		new(policyv1.IfHealthyBudget), new(policyv1.AlwaysAllow))
	d.perhapsLate(&b.ObjectMeta)
	return b
}

// perhapsLate lets the object come between the two times.
func (d *dice) perhapsLate(m *metav1.ObjectMeta) {
	if d.oneIn(20) {
		setAnnotation(m, annotationLate+"object", "true")
	}
}

// daemonSet has a pod on every node that it may be on, when its pods were not forgotten.
func (d *dice) daemonSet(name string) appsv1.DaemonSet {
	out := appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: name, UID: uidOf("ds", name)}}
	out.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"daemon": name}}
	out.Spec.Template.Labels = map[string]string{"daemon": name}
	out.Spec.Template.Spec = corev1.PodSpec{Containers: []corev1.Container{newContainer(100, 128)},
		Tolerations: []corev1.Toleration{{Operator: corev1.TolerationOpExists}}}
	if d.oneIn(3) {
		out.Spec.Template.Spec.NodeSelector = map[string]string{"kubernetes.io/arch": pickOne(d, "amd64", "arm64")}
	}
	return out
}
