package translate

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/workload/manifest"
)

// heavyPod is a pod of 1 CPU that asks for much else.
func heavyPod(edit func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "heavy", Labels: map[string]string{"app": "heavy"}},
		Spec: corev1.PodSpec{Affinity: &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}, PodAntiAffinity: &corev1.PodAntiAffinity{}},
			Containers: []corev1.Container{{Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}}}}}
	edit(p)
	return p
}

func nodeTerms(n, values int) *corev1.NodeSelector {
	out := &corev1.NodeSelector{}
	for i := range n {
		e := corev1.NodeSelectorRequirement{Key: "zone", Operator: "In"}
		for j := range values {
			e.Values = append(e.Values, fmt.Sprintf("z-%d-%d", i, j))
		}
		out.NodeSelectorTerms = append(out.NodeSelectorTerms, corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{e}})
	}
	return out
}

// A pod that asks for too much is refused by name, and little of it is kept; one that asks for as much as it may is
// translated as it is.
func TestWhatOnePodMayAskFor(t *testing.T) {
	labels := func(n, long int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for i := range n {
				p.Labels[fmt.Sprintf("l%05d", i)] = strings.Repeat("x", long)
			}
		}
	}
	required := func(terms, values int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution = nodeTerms(terms, values)
		}
	}
	repelling := func(n int) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			for range n {
				anti := p.Spec.Affinity.PodAntiAffinity
				anti.RequiredDuringSchedulingIgnoredDuringExecution = append(anti.RequiredDuringSchedulingIgnoredDuringExecution,
					corev1.PodAffinityTerm{TopologyKey: "zone", LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}})
			}
		}
	}
	for name, c := range map[string]struct {
		edit    func(*corev1.Pod)
		refused string
	}{
		"99 labels more":     {labels(99, 3), ""},
		"100 labels more":    {labels(100, 3), "it has 101 labels, more than 100"},
		"60,000 labels":      {labels(60_000, 3), "it has 60001 labels, more than 100; its labels and all that it asks of nodes have 540008 bytes, more than 32768"},
		"long labels":        {labels(2, 20_000), "its labels and all that it asks of nodes have 40020 bytes, more than 32768"},
		"100 terms":          {required(100, 9), ""},
		"8,000 terms":        {required(8_000, 1), "its node affinity has 8000 terms, more than 100; its selectors, affinity, tolerations, ports, volumes and resources have 16000 keys and values, more than 1000; its labels and all that it asks of nodes have 94898 bytes, more than 32768"},
		"all instance types": {required(1, 999), ""},
		"1,001 values":       {required(1, 1_000), "its selectors, affinity, tolerations, ports, volumes and resources have 1001 keys and values, more than 1000"},
		"32 affinities":      {repelling(32), ""},
		"33 affinities":      {repelling(33), "it has 33 spread constraints and terms of pod affinity, more than 32"},
		"33 spreads": {func(p *corev1.Pod) {
			p.Spec.TopologySpreadConstraints = make([]corev1.TopologySpreadConstraint, 33)
		}, "it has 33 spread constraints and terms of pod affinity, more than 32"},
		"a long preference": {func(p *corev1.Pod) {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1,
				Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{Key: "a", Operator: "In", Values: []string{strings.Repeat("x", 900_000)}}}}}}
		}, "its labels and all that it asks of nodes have 900009 bytes, more than 32768"},
		"many ports": {func(p *corev1.Pod) {
			for i := range int32(2_000) {
				p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: 1024 + i})
			}
		}, "it has 2000 host ports, more than 32; its selectors, affinity, tolerations, ports, volumes and resources have 2000 keys and values, more than 1000"},
		"many resources": {func(p *corev1.Pod) {
			for i := range 2_000 {
				p.Spec.Containers[0].Resources.Requests[corev1.ResourceName(fmt.Sprintf("a.b/%d", i))] = resource.MustParse("0")
			}
		}, "it asks for 2000 extended resources, more than 32; its selectors, affinity, tolerations, ports, volumes and resources have 2000 keys and values, more than 1000"},
		"a long annotation": {func(p *corev1.Pod) {
			p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": strings.Repeat("x", 200_000)}
		}, ""},
	} {
		p := heavyPod(c.edit)
		got := Pod(p)
		if d := cmp.Diff(c.refused, strings.Join(got.Unmodelled, "; ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		text, err := json.Marshal(got)
		if err != nil || len(text) > 64<<10 || got.Need.CPU != 1_000 || got.Name != "heavy" || got.Labels["app"] != "heavy" {
			t.Errorf("%s: %d bytes are kept: %v, need %s", name, len(text), err, got.Need)
		}
		shapes := PodShapes{}
		if d := cmp.Diff(got.Unmodelled, shapes.ListPod(p).Pod().Unmodelled); d != "" {
			t.Errorf("%s: in a list (-want +got):\n%s", name, d)
		}
	}
}

// The pods of the workloads that the bench plans reach a fifth of no bound, so that half of each would refuse none.
func TestBoundsAreFarFromRealPods(t *testing.T) {
	paths, err := filepath.Glob("../../../infra/lab/bench/workloads/*.json*")
	if err != nil || len(paths) < 5 {
		t.Fatalf("%v: %v", paths, err)
	}
	var most podSize
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err == nil {
			data, err = manifest.Gunzip(data)
		}
		var w struct {
			Groups []struct{ Pod corev1.Pod }
		}
		if err == nil {
			err = json.Unmarshal(data, &w)
		}
		if err != nil || len(w.Groups) == 0 {
			t.Fatalf("%s: %d groups, %v", path, len(w.Groups), err)
		}
		for _, g := range w.Groups {
			one := sizeOf(&g.Pod)
			for _, x := range [][2]*int{{&most.labels, &one.labels}, {&most.alternatives, &one.alternatives}, {&most.topology, &one.topology},
				{&most.ports, &one.ports}, {&most.values, &one.values}, {&most.text, &one.text}} {
				*x[0] = max(*x[0], *x[1])
			}
			if len(one.extended) > len(most.extended) {
				most.extended = one.extended
			}
		}
	}
	for _, x := range [][2]int{{most.labels, mostLabels}, {most.alternatives, mostAlternatives}, {most.topology, mostTopology}, {most.ports, mostPorts},
		{most.values, mostValues}, {most.text, mostText}, {len(most.extended), mostExtended}} {
		if 5*x[0] > x[1] {
			t.Errorf("a pod reaches %d of %d", x[0], x[1])
		}
	}
	if most.values == 0 || most.topology == 0 {
		t.Errorf("the most is %+v", most)
	}
}

// What keeps others off a node, and is too much to keep, keeps all others off it: they are planned elsewhere.
func TestAHeavyPodKeepsItsNode(t *testing.T) {
	ports := Pod(heavyPod(func(p *corev1.Pod) {
		for i := range int32(1_001) {
			p.Spec.Containers[0].Ports = append(p.Spec.Containers[0].Ports, corev1.ContainerPort{ContainerPort: 80, HostPort: 1024 + i})
		}
	}))
	labels := Pod(heavyPod(func(p *corev1.Pod) {
		for i := range 101 {
			p.Labels[fmt.Sprintf("l%05d", i)] = ""
		}
	}))
	everybody := []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{}, NamespaceSelector: &cluster.Selector{}}}
	if d := cmp.Diff(everybody, ports.AntiAffinity); d != "" || len(ports.HostPorts) > 0 || len(labels.AntiAffinity) > 0 {
		t.Errorf("anti-affinity (-want +got):\n%s\nof labels: %v", d, labels.AntiAffinity)
	}
}

// What a kubelet writes into its Node is kept as far as any node needs it: what every node has, and the first of the rest.
func TestWhatOneNodeMaySay(t *testing.T) {
	n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"topology.kubernetes.io/zone": "a", "karpenter.sh/nodepool": "general"}}}
	n.Status.Capacity = corev1.ResourceList{"cpu": resource.MustParse("4"), "memory": resource.MustParse("8Gi"), "pods": resource.MustParse("58")}
	for i := range 20_000 {
		n.Labels[fmt.Sprintf("a%05d", i)] = "x"
		n.Status.Capacity[corev1.ResourceName(fmt.Sprintf("a.b/%05d", i))] = resource.MustParse("1")
		n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeConditionType(fmt.Sprint("C", i))})
	}
	n.Status.Conditions = append(n.Status.Conditions, corev1.NodeCondition{Type: corev1.NodeReady, Status: corev1.ConditionTrue})
	n.Status.Allocatable = n.Status.Capacity
	got := Node(n)
	if len(got.Labels) != 1_000 || got.Labels["topology.kubernetes.io/zone"] != "a" || got.Labels["karpenter.sh/nodepool"] != "general" || got.Labels["a00000"] != "x" {
		t.Errorf("%d labels, zone %q", len(got.Labels), got.Labels["topology.kubernetes.io/zone"])
	}
	if c := got.Capacity; len(c.Extended) != 100 || c.CPU != 4_000 || c.Memory != 8<<30 || c.Pods != 58 || len(got.Allocatable.Extended) != 100 || c.Get("a.b/00000") != 1 {
		t.Errorf("%d extended resources, %d of the allocatable, cpu %d", len(c.Extended), len(got.Allocatable.Extended), c.CPU)
	}
	if len(got.Conditions) != 100 || !got.Ready {
		t.Errorf("%d conditions, ready %t", len(got.Conditions), got.Ready)
	}
}

// A grace period is one that ends: the API server takes more seconds than a time can be told in.
func TestTheLongestGracePeriod(t *testing.T) {
	for given, want := range map[int64]int64{math.MaxInt64: 315_360_000, 9_300_000_000: 315_360_000, -5: 0, 3600: 3600} {
		if got := Pod(&corev1.Pod{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: &given}}).GraceSec; got != want {
			t.Errorf("of %d s: %d", given, got)
		}
	}
}

// A PodDisruptionBudget that selects by a thousand keys counts for all pods of its namespace, which its owner is told.
func TestABudgetThatSelectsByTooMuch(t *testing.T) {
	b := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: "b"}}
	b.Spec.Selector = &metav1.LabelSelector{}
	for i := range 1000 {
		b.Spec.Selector.MatchExpressions = append(b.Spec.Selector.MatchExpressions,
			metav1.LabelSelectorRequirement{Key: fmt.Sprintf("k%d", i), Operator: metav1.LabelSelectorOpDoesNotExist})
	}
	got := Budget(b)
	if len(got.Selector.Requirements) != 0 || got.String() != "evil/b (its selector is too large: it counts for all pods of the namespace)" {
		t.Errorf("%d requirements, %s", len(got.Selector.Requirements), got)
	}
}
