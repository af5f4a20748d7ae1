package sim

import (
	"fmt"
	"maps"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

// hostileObjects returns what tenants and nodes write that are no pods that wait.
func hostileObjects() []hostility {
	return []hostility{
		{"pods that refuse many labels", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p := d.pod(HostileNamespace, name)
			var term corev1.NodeSelectorTerm
			for i := range 150 + d.IntN(100) {
				one := termOf(fmt.Sprintf("example.com/k%d", i), corev1.NodeSelectorOpNotIn, "x")
				term.MatchExpressions = append(term.MatchExpressions, one.MatchExpressions...)
			}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{
				NodeSelectorTerms: []corev1.NodeSelectorTerm{term}}
			d.addPods(s, p, 5)
		}},
		{"a node with many labels and resources", addHostileNode},
		{"running pods with many terms", addRunningPods},
		{"pods of many sizes that prefer something", addChoosyPods},
		{"pods with terms about many namespaces", addFarReachingPods},
		{"a PodDisruptionBudget of many keys", func(_ *hostileDraw, s *cluster.Snapshot, name string) {
			b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: HostileNamespace, Name: name}}
			b.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{}}
			for i := range 2000 {
				b.Spec.Selector.MatchLabels[fmt.Sprintf("k%d", i)] = "x"
			}
			s.Budgets = append(s.Budgets, translate.Budget(b))
		}},
		{"pods whose grace period does not end", func(d *hostileDraw, s *cluster.Snapshot, name string) {
			p, grace := d.pod(HostileNamespace, name), int64(math.MaxInt64)
			p.Spec.TerminationGracePeriodSeconds = &grace
			p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = s.Nodes[0].Name, corev1.PodRunning, nil
			d.addPods(s, p, 3)
		}},
		{"PodDisruptionBudgets", func(_ *hostileDraw, s *cluster.Snapshot, name string) {
			for i := range 500 {
				s.Budgets = append(s.Budgets, cluster.PodDisruptionBudget{Namespace: HostileNamespace,
					Name: fmt.Sprintf("%s-%d", name, i), Selector: &cluster.Selector{}})
			}
		}},
		{"NodeOverlays", addHostileOverlays},
	}
}

// addChoosyPods adds pods of which no two are alike, each with a preference, a term or a soft spread of its own.
func addChoosyPods(d *hostileDraw, s *cluster.Snapshot, name string) {
	for i := range 60 {
		p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
		cpu := resource.NewMilliQuantity(int64(1+i), resource.DecimalSI)
		p.Spec.Containers[0].Resources.Requests["cpu"] = *cpu
		own := termOf(corev1.LabelInstanceTypeStable, corev1.NodeSelectorOpNotIn, fmt.Sprint(i))
		switch d.IntN(3) {
		case 0:
			prefers := []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: own}}
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				PreferredDuringSchedulingIgnoredDuringExecution: prefers}}
		case 1:
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{
				RequiredDuringSchedulingIgnoredDuringExecution: &corev1.NodeSelector{
					NodeSelectorTerms: []corev1.NodeSelectorTerm{own}}}}
		case 2:
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: corev1.LabelTopologyZone,
				MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}}
		}
		d.addPods(s, p, 1)
	}
}

// addFarReachingPods adds pods that want to be near pods of thousands of namespaces that
// are not there.
func addFarReachingPods(d *hostileDraw, s *cluster.Snapshot, name string) {
	s.Namespaces = slices.Clone(s.Namespaces)
	for i := range 2000 {
		s.Namespaces = append(s.Namespaces, cluster.Namespace{Name: fmt.Sprintf("%s-%d", name, i)})
	}
	for i := range 10 {
		p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
		term := corev1.PodAffinityTerm{TopologyKey: corev1.LabelTopologyZone,
			NamespaceSelector: &metav1.LabelSelector{}, LabelSelector: &metav1.LabelSelector{MatchLabels: p.Labels}}
		terms := slices.Repeat([]corev1.PodAffinityTerm{term}, 2+d.IntN(30))
		p.Spec.Affinity = &corev1.Affinity{PodAffinity: &corev1.PodAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution: terms}}
		d.addPods(s, p, 1)
	}
}

func addHostileNode(d *hostileDraw, s *cluster.Snapshot, _ string) {
	n := &s.Nodes[d.IntN(len(s.Nodes))]
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(n.Labels)}}
	o.Status.Capacity = corev1.ResourceList{}
	for i := range 2000 + d.IntN(2000) {
		o.Labels[fmt.Sprintf("evil.example/l%d", i)] = "x"
		o.Status.Capacity[corev1.ResourceName(fmt.Sprintf("evil.example/r%d", i))] = resource.MustParse("9Ei")
	}
	told := translate.Node(o)
	n.Labels, n.Capacity.Extended = told.Labels, told.Capacity.Extended
	n.Allocatable.Extended = told.Capacity.Extended
}

// addRunningPods adds pods that run, with anti-affinity about the pods of all namespaces.
func addRunningPods(d *hostileDraw, s *cluster.Snapshot, name string) {
	node := s.Nodes[d.IntN(len(s.Nodes))].Name
	for i := range 20 {
		p := d.pod(HostileNamespace, fmt.Sprintf("%s-%d", name, i))
		p.Spec.Containers[0].Resources = corev1.ResourceRequirements{}
		p.Spec.NodeName, p.Status.Phase, p.Status.Conditions = node, corev1.PodRunning, nil
		apart := &corev1.PodAntiAffinity{}
		for j := range 32 {
			of := &metav1.LabelSelector{MatchLabels: map[string]string{"app": fmt.Sprint(j)}}
			one := antiAffinity(1, fmt.Sprintf("k%d-%d", i, j), of, &metav1.LabelSelector{})
			apart.RequiredDuringSchedulingIgnoredDuringExecution = append(
				apart.RequiredDuringSchedulingIgnoredDuringExecution,
				one.RequiredDuringSchedulingIgnoredDuringExecution...)
		}
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: apart}
		d.addPods(s, p, 1)
	}
}

// addHostileOverlays adds heavy overlays of many requirements, one of which no type meets.
func addHostileOverlays(d *hostileDraw, s *cluster.Snapshot, name string) {
	for i := range 60 {
		o, weight := &v1alpha1.NodeOverlay{}, int32(10_000)
		usd := []string{"0", "10000", "1e400", "-5"}[d.IntN(4)]
		o.Name, o.Spec.Weight, o.Spec.Price = fmt.Sprintf("%s-%d", name, i), &weight, &usd
		for j := range 2 + d.IntN(98) {
			o.Spec.Requirements = append(o.Spec.Requirements, v1alpha1.Requirement{
				Key:      fmt.Sprintf("example.com/k%d-%d", i, j),
				Operator: corev1.NodeSelectorOpNotIn, Values: []string{"x"}})
		}
		o.Spec.Requirements[0].Operator = corev1.NodeSelectorOpIn
		s.Overlays = append(s.Overlays, translate.Overlay(o))
	}
}
