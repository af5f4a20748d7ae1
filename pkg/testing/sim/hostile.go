package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclass/translate"
)

// HostileNamespace is the namespace of the tenants who mean the others ill.
const HostileNamespace = "evil"

// hostileDraw draws a cluster that tenants share.
type hostileDraw struct {
	*rand.Rand
	now     time.Time
	types   []instancetypes.Type
	daemons []translate.DaemonTemplate // of the hostile
}

// HostileCluster is a cluster of tenants who mean nobody ill, and the same beside hostile ones: their objects are as
// the API server stores them, and come to the snapshot by the translation that every function uses. What is hostile is
// told in words.
func HostileCluster(seed uint64, market instancetypes.Catalog) (alone, beside cluster.Snapshot, words []string) {
	d := &hostileDraw{Rand: rand.New(rand.NewPCG(seed, 55)), now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)}
	class := instancetypes.DefaultClass(market)
	alone = cluster.Snapshot{Now: d.now, Catalog: market, Classes: []instancetypes.Class{class},
		Rules: cluster.Settings{PackingIterations: cluster.NoIterations, DemandMilliseconds: 64}}
	d.types = instancetypes.ResolveTypes(market, class, nil, d.now)
	alone.Pools = []cluster.Pool{{Name: "general", UID: "uid-general", Class: class.Name, Ready: true,
		Requirements: requirements.NewSet(requirements.Of("karpenter.sh/capacity-type", "spot", "on-demand"),
			requirements.Any("example.com/team")),
		Limits: resources.List{CPU: 4_000_000}, Limited: []string{resources.CPU}}}
	for _, ns := range []string{"blog", HostileNamespace, "shop"} {
		alone.Namespaces = append(alone.Namespaces, cluster.Namespace{Name: ns})
	}
	for i := range 1 + d.IntN(3) {
		d.addNode(&alone, fmt.Sprintf("node-%d", i), alone.Pools[0].Name)
	}
	for i := range 2 + d.IntN(5) {
		d.addApp(&alone, []string{"shop", "blog"}[i%2], fmt.Sprintf("app%d", i))
	}
	beside = alone
	for _, list := range []*[]cluster.Pod{&beside.Pods, &beside.Daemons} {
		*list = slices.Clone(*list)
	}
	beside.Nodes, beside.Claims = slices.Clone(alone.Nodes), slices.Clone(alone.Claims)
	for range 1 + d.IntN(3) {
		words = append(words, d.addHostility(&beside, len(words)))
	}
	list := translate.PodList{}
	beside.Daemons = append(beside.Daemons, list.SampleDaemons(d.daemons)...)
	return alone, beside, words
}

// addNode adds a node of a claim, in service, with room.
func (d *hostileDraw) addNode(s *cluster.Snapshot, name, pool string) {
	t := d.types[d.IntN(len(d.types))]
	labels := t.Requirements.Labels()
	of := t.Offerings[0]
	labels[instancetypes.LabelZone], labels[instancetypes.LabelCapacityType] = of.Zone, of.CapacityType
	labels[v1.LabelNodePool], labels[v1.LabelRegistered], labels[v1.LabelInitialized] = pool, "true", "true"
	id := "aws:///" + of.Zone + "/i-" + name
	s.Claims = append(s.Claims, cluster.Claim{Name: name, UID: "uid-" + name, Pool: pool, ProviderID: id,
		NodeName: name, Class: s.Classes[0].Name, Labels: labels, Created: d.now.Add(-time.Hour), Capacity: t.Capacity,
		Allocatable: t.Allocatable})
	s.Nodes = append(s.Nodes, cluster.Node{Name: name, UID: "uid-node-" + name, ProviderID: id, Labels: labels,
		Capacity: t.Capacity, Allocatable: t.Allocatable, Created: d.now.Add(-time.Hour),
		ReadySince: d.now.Add(-time.Hour)})
}

// addApp adds pods that wait, of a tenant who means nobody ill.
func (d *hostileDraw) addApp(s *cluster.Snapshot, namespace, name string) {
	p := d.pod(namespace, name)
	cpu := *resource.NewMilliQuantity(100+int64(d.IntN(1500)), resource.DecimalSI)
	p.Spec.Containers[0].Resources.Requests["cpu"] = cpu
	mine := &metav1.LabelSelector{MatchLabels: p.Labels}
	switch d.IntN(5) {
	case 0:
		p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone,
			MaxSkew: 1, WhenUnsatisfiable: corev1.DoNotSchedule, LabelSelector: mine}}
	case 1:
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: antiAffinity(1, corev1.LabelHostname, mine, nil)}
	case 2:
		p.Spec.NodeSelector = map[string]string{"example.com/team": namespace}
	case 3:
		p.Spec.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "on-demand"}
	}
	d.addPods(s, p, 1+d.IntN(6))
}

// pod is a small pod that kube-scheduler found no node for.
func (d *hostileDraw) pod(namespace, name string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID(name),
		Labels: map[string]string{"app": name}, CreationTimestamp: metav1.NewTime(d.now.Add(-time.Minute))}}
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{
		Requests: corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}}}}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
		Reason: corev1.PodReasonUnschedulable}}
	return p
}

func (d *hostileDraw) addPods(s *cluster.Snapshot, p *corev1.Pod, n int) {
	shapes := translate.PodShapes{}
	for i := range n {
		one := *p
		one.Name, one.UID = fmt.Sprintf("%s-%d", p.Name, i), types.UID(fmt.Sprintf("%s-%s-%d", p.Namespace, p.Name, i))
		s.Pods = append(s.Pods, shapes.ListPod(&one).Pod())
	}
}

func termOf(key string, op corev1.NodeSelectorOperator, values ...string) corev1.NodeSelectorTerm {
	return corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{
		{Key: key, Operator: op, Values: values}}}
}

func antiAffinity(n int, key string, of, namespaces *metav1.LabelSelector) *corev1.PodAntiAffinity {
	out := &corev1.PodAntiAffinity{}
	for range n {
		out.RequiredDuringSchedulingIgnoredDuringExecution = append(out.RequiredDuringSchedulingIgnoredDuringExecution,
			corev1.PodAffinityTerm{TopologyKey: key, LabelSelector: of, NamespaceSelector: namespaces})
	}
	return out
}

// hostility is an attack of a tenant or a node on others, and how it changes the snapshot.
type hostility struct {
	word string
	add  func(d *hostileDraw, s *cluster.Snapshot, name string)
}

func hostilities() []hostility {
	return slices.Concat(hostileSelectors(), hostileAmounts(), hostileDaemons(), hostileObjects())
}

// hostileSelectors are pods that ask for much of their nodes.
func hostileSelectors() []hostility {
	return []hostility{
		{"pods with many labels", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			for i := range 50 + d.IntN(400) {
				p.Labels[fmt.Sprintf("l%d", i)] = "x"
			}
			d.addPods(s, p, 30)
		}},
		{"pods with many terms", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			most := 20 + d.IntN(120)
			for i := range 25 {
				p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
				req := &corev1.NodeSelector{}
				for j := range most {
					req.NodeSelectorTerms = append(req.NodeSelectorTerms, termOf(corev1.LabelInstanceTypeStable,
						corev1.NodeSelectorOpNotIn, fmt.Sprint(i), fmt.Sprint(j)))
				}
				p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
					RequiredDuringSchedulingIgnoredDuringExecution: req}}
				d.addPods(s, p, 1)
			}
		}},
		{"pods that spread over keys of their own", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			for i := range 20 {
				p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
				for j := range 10 + d.IntN(30) {
					c := corev1.TopologySpreadConstraint{TopologyKey: fmt.Sprintf("k%d-%d", i, j), MaxSkew: 1,
						WhenUnsatisfiable: corev1.ScheduleAnyway,
						LabelSelector:     &metav1.LabelSelector{MatchLabels: map[string]string{"x": fmt.Sprint(j)}}}
					p.Spec.TopologySpreadConstraints = append(p.Spec.TopologySpreadConstraints, c)
				}
				d.addPods(s, p, 1)
			}
		}},
		{"pods with resources of their own", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			for i := range 20 {
				p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
				for j := range 10 + d.IntN(30) {
					name := corev1.ResourceName(fmt.Sprintf("evil.example/%d-%d", i, j))
					p.Spec.Containers[0].Resources.Requests[name] = resource.MustParse("1")
				}
				d.addPods(s, p, 1)
			}
		}},
		{"pods that prefer what no label can be", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			value := []string{";--anonymous-auth=true#", "a b", "a\nb", "'\"`$(x)", "-"}[d.IntN(5)]
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{Weight: 1,
					Preference: termOf("example.com/team", corev1.NodeSelectorOpIn, value)}}}}
			d.addPods(s, p, 5)
		}},
	}
}

// hostileAmounts are pods and nodes of absurd amounts.
func hostileAmounts() []hostility {
	return []hostility{
		{"pods that nothing holds", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			cpu := []string{"1000000", "9223372036854775807", "1Ei"}[d.IntN(3)]
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse(cpu)
			d.addPods(s, p, 30)
		}},
		{"virtual pods", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			before := len(s.Pods)
			d.addPods(s, d.pod(HostileNamespace, name), 200)
			for i := range s.Pods[before:] {
				s.Pods[before+i].Virtual, s.Pods[before+i].Priority = true, -1<<31
			}
		}},
		{"a node that says it has more", func(d *hostileDraw, s *cluster.Snapshot, _ string) {
			n := &s.Nodes[d.IntN(len(s.Nodes))]
			n.Capacity = resources.List{CPU: 1_000_000_000_000, Memory: 1 << 50, Pods: 1 << 20}
		}},
		{"pods of high priority", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p, high := d.pod(HostileNamespace, name), int32(1_000_000_000)
			p.Spec.Priority = &high
			d.addPods(s, p, 20)
		}},
	}
}

// hostileDaemons are DaemonSets that would take all room, or keep others off it.
func hostileDaemons() []hostility {
	return []hostility{
		{"a DaemonSet that fits nowhere", func(d *hostileDraw, _ *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("1000000")
			d.addDaemon(p)
		}},
		{"DaemonSets that fit alone and not together", func(d *hostileDraw, _ *cluster.Snapshot, name string) {
			for i := range 2 + d.IntN(3) {
				p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
				p.Spec.Containers[0].Resources.Requests["cpu"] = resource.MustParse("4")
				d.addDaemon(p)
			}
		}},
		{"many DaemonSets", func(d *hostileDraw, _ *cluster.Snapshot, name string) {
			for i := range 1000 {
				p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
				p.Spec.NodeSelector = map[string]string{fmt.Sprintf("example.com/none-%d", i): "x"}
				d.addDaemon(p)
			}
		}},
		{"a DaemonSet that keeps away from its own kind", func(d *hostileDraw, _ *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: antiAffinity(33+d.IntN(100), corev1.LabelHostname,
				&metav1.LabelSelector{MatchLabels: p.Labels}, nil)}
			d.addDaemon(p)
		}},
		{"a DaemonSet with many labels and ports", func(d *hostileDraw, _ *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			for i := range int32(40) {
				c := &p.Spec.Containers[0]
				c.Ports = append(c.Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: 2000 + i})
			}
			d.addDaemon(p)
		}},
	}
}

func (d *hostileDraw) addDaemon(p *corev1.Pod) {
	set := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: p.Namespace, Name: p.Name, UID: p.UID}}
	set.Spec.Template.Labels, set.Spec.Template.Spec = p.Labels, p.Spec
	d.daemons = append(d.daemons, translate.NewDaemonTemplate(set))
}

func (d *hostileDraw) addHostility(s *cluster.Snapshot, number int) string {
	all := hostilities()
	x := all[d.IntN(len(all))]
	x.add(d, s, fmt.Sprintf("evil%d", number))
	return x.word
}

// Hostilities returns the number of kinds of hostility.
func Hostilities() int { return len(hostilities()) }
