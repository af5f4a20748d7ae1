package sim_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/nodeclaim/bootstrap"
	"joiner.sh/pkg/nodeclass/translate"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/testing/objects"
)

// FuzzTenant puts a word wherever a pod has one, and what a tenant may take for one, beside a pod of somebody else: the
// nodes that are launched carry labels and taints that a Node can have, so that user data takes them, annotations and
// requirements that the API server takes, and the other pod gets its node.
func FuzzTenant(f *testing.F) {
	for _, w := range []string{"a", "", "example.com/team", ";--anonymous-auth=true#", "a b", "a\nb", "\u202egpj", "$(id)", "-", "\x00", "a,b", "node-restriction.kubernetes.io/x",
		"karpenter.sh/nodepool", "topology.kubernetes.io/zone", "kubernetes.io/hostname", "joiner.sh/hold", strings.Repeat("a", 300)} {
		f.Add("example.com/team", w, w, uint8(255), int64(100))
		f.Add(w, w, "team", uint8(255), int64(1)<<62)
		f.Add(w, "gold", w, uint8(3), int64(-5))
	}
	f.Add("example.com/team", "a b", "0", uint8(0xc9), int64(100)) // found
	market := objects.FewTypes()
	class := instancetypes.DefaultClass(market)
	f.Fuzz(func(t *testing.T, key, value, name string, where uint8, amount int64) {
		s := cluster.Snapshot{Now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), Catalog: market, Classes: []instancetypes.Class{class},
			Rules: cluster.Settings{PackingIterations: cluster.NoIterations}, Namespaces: []cluster.Namespace{{Name: "evil"}, {Name: "shop"}},
			Pools: []cluster.Pool{{Name: "general", UID: "u", Class: class.Name, Ready: true, Requirements: requirements.NewSet(
				requirements.Of("karpenter.sh/capacity-type", "spot", "on-demand"), requirements.Any("example.com/team"))}}}
		for _, p := range []*corev1.Pod{tenantPod(key, value, name, where, amount), tenantPod("app", "web", "web", 0, 100)} {
			shapes := translate.PodShapes{}
			s.Pods = append(s.Pods, shapes.ListPod(p).Pod())
		}
		s.Pods[1].Namespace = "shop"
		plan := provisioning.Decide(s).Plan
		for _, u := range plan.Unplaced {
			if strings.HasPrefix(u.Pod, "shop/") {
				t.Errorf("%s has no place: %s", u.Pod, u.Message())
			}
			if len(u.Message()) > 10_000 {
				t.Errorf("a reason of %d bytes", len(u.Message()))
			}
		}
		for _, l := range plan.AllLaunches() {
			if _, err := bootstrap.NewNodeRegistration(l.Labels, append(l.Taints, l.Startup...)); err != nil {
				t.Errorf("launch %s: %v", l, err)
			}
			if n := len(l.Requirements.All()); n > 100 {
				t.Errorf("%d requirements, of which a NodeClaim has 100", n)
			}
			size := 0
			for k, v := range l.Annotations {
				if size += len(k) + len(v); len(validation.IsQualifiedName(k)) > 0 {
					t.Errorf("annotation %q", k)
				}
			}
			if size > 256<<10 {
				t.Errorf("%d bytes of annotations", size)
			}
		}
	})
}

// tenantPod is a pod with a label, a word in each of the places that where has a bit for, and an amount.
func tenantPod(key, value, name string, where uint8, amount int64) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "evil", Name: name, UID: "u", Labels: map[string]string{key: value}, Annotations: map[string]string{key: value}}}
	expression := corev1.NodeSelectorRequirement{Key: key, Operator: corev1.NodeSelectorOpIn, Values: []string{value}}
	affinity := &corev1.NodeAffinity{}
	selector := &metav1.LabelSelector{MatchLabels: map[string]string{key: value}}
	requests := corev1.ResourceList{"cpu": *resource.NewMilliQuantity(amount, resource.DecimalSI)}
	for i, put := range []func(){
		func() { p.Spec.NodeSelector = map[string]string{key: value} },
		func() {
			affinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 1, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{expression}}}}
		},
		func() {
			affinity.RequiredDuringSchedulingIgnoredDuringExecution = &corev1.NodeSelector{NodeSelectorTerms: []corev1.NodeSelectorTerm{{MatchExpressions: []corev1.NodeSelectorRequirement{expression}}}}
		},
		func() {
			p.Spec.Tolerations = []corev1.Toleration{{Key: key, Value: value, Effect: corev1.TaintEffect(name)}}
		},
		func() {
			p.Spec.TopologySpreadConstraints = []corev1.TopologySpreadConstraint{{TopologyKey: key, MaxSkew: 1, WhenUnsatisfiable: corev1.ScheduleAnyway, LabelSelector: selector}}
		},
		func() { requests[corev1.ResourceName(key)] = *resource.NewQuantity(amount, resource.DecimalSI) },
		func() { p.Spec.PriorityClassName, p.Spec.SchedulerName, p.Spec.NodeName = name, name, "" },
		func() {
			p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []corev1.PodAffinityTerm{
				{TopologyKey: corev1.LabelHostname, LabelSelector: selector, Namespaces: []string{name}}}}}
		},
	} {
		if where&(1<<i) != 0 {
			put()
		}
	}
	if p.Spec.Affinity == nil {
		p.Spec.Affinity = &corev1.Affinity{}
	}
	p.Spec.Affinity.NodeAffinity = affinity
	p.Spec.Containers = []corev1.Container{{Name: "c", Resources: corev1.ResourceRequirements{Requests: requests}}}
	p.Status.Phase = corev1.PodPending
	p.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}
	return p
}
