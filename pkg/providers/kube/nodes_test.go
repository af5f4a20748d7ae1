package kube

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

func taint(key, value, effect string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffect(effect)}
}

// Taints of the claim join those of the node, which win, once; the unregistered one goes.
func TestTaintsAtRegistration(t *testing.T) {
	claim := cluster.Claim{Taints: []cluster.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}, {Key: "team", Value: "a", Effect: "NoExecute"}},
		StartupTaints: []cluster.Taint{{Key: "warming", Effect: "NoSchedule"}}}
	unregistered := taint(karpv1.TaintUnregistered, "", "NoExecute")
	own := taint("team", "b", "NoSchedule")
	for _, c := range []struct {
		name   string
		labels map[string]string
		has    []corev1.Taint
		want   []corev1.Taint
	}{
		{"the first time", nil, []corev1.Taint{unregistered, own}, []corev1.Taint{own, taint("team", "a", "NoExecute"), taint("warming", "", "NoSchedule")}},
		{"a node that has synced its taints", map[string]string{karpv1.LabelDoNotSyncTaints: "true"}, []corev1.Taint{own, unregistered}, []corev1.Taint{own}},
		{"another word than true", map[string]string{karpv1.LabelDoNotSyncTaints: "yes"}, nil,
			[]corev1.Taint{taint("team", "a", "NoSchedule"), taint("team", "a", "NoExecute"), taint("warming", "", "NoSchedule")}},
		{"a node that is registered: startup taints do not come back", map[string]string{karpv1.LabelRegistered: "true"}, []corev1.Taint{own}, []corev1.Taint{own}},
	} {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}, Spec: corev1.NodeSpec{Taints: c.has}}
		if diff := cmp.Diff(c.want, registeredTaints(o, claim)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// A node is marked for deletion once: by the taint with its own effect and the label of load balancers, unless a user
// chose another value for that label.
func TestTaintForTermination(t *testing.T) {
	disrupted, other := taint("karpenter.sh/disrupted", "", "NoSchedule"), taint("team", "a", "NoSchedule")
	const label = "node.kubernetes.io/exclude-from-external-load-balancers"
	labelled := patchFields{"labels": patchFields{label: "karpenter"}}
	for _, c := range []struct {
		name   string
		labels map[string]string
		has    []corev1.Taint
		want   patchFields
	}{
		{"one in service", nil, []corev1.Taint{other}, patchFields{"spec": patchFields{"taints": []corev1.Taint{other, disrupted}}, "metadata": labelled}},
		{"another effect", nil, []corev1.Taint{taint("karpenter.sh/disrupted", "", "NoExecute"), other},
			patchFields{"spec": patchFields{"taints": []corev1.Taint{other, disrupted}}, "metadata": labelled}},
		{"one that disruption tainted", nil, []corev1.Taint{disrupted}, patchFields{"metadata": labelled}},
		{"a value of the user's", map[string]string{label: "mine"}, []corev1.Taint{disrupted}, nil},
		{"tainted already", map[string]string{label: "karpenter"}, []corev1.Taint{disrupted, other}, nil},
	} {
		o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: c.labels}, Spec: corev1.NodeSpec{Taints: c.has}}
		if diff := cmp.Diff(c.want, terminationPatch(o)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// The taint of a revision comes once, and goes with others left.
func TestTaintOfRevision(t *testing.T) {
	key := "joiner.sh/failed-revision"
	failed, other := taint(key, "", "NoSchedule"), taint("team", "a", "NoSchedule")
	node := func(has ...corev1.Taint) *corev1.Node { return &corev1.Node{Spec: corev1.NodeSpec{Taints: has}} }
	set := func(has ...corev1.Taint) patchFields { return patchFields{"spec": patchFields{"taints": has}} }
	for _, c := range []struct {
		name      string
		got, want patchFields
	}{
		{"one that fails", revisionPatch(node(other), key), set(other, failed)},
		{"one that failed already", revisionPatch(node(failed, other), key), nil},
		{"one that is good again", withTaints(node(failed, other), withoutTaint(node(failed, other), key)), set(other)},
		{"one that never failed", withTaints(node(other), withoutTaint(node(other), key)), nil},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Labels and annotations of the claim win over those of the node, and a node that has all is left alone.
func TestRegistrationPatch(t *testing.T) {
	claim := cluster.Claim{Name: "c1", UID: "u1", Labels: map[string]string{"team": "a"}, Annotations: map[string]string{"note": "x"}}
	block := true
	owner := metav1.OwnerReference{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "c1", UID: "u1", BlockOwnerDeletion: &block}
	o := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "b", "own": "1"}, Annotations: map[string]string{"note": "y", "own": "1"},
		Finalizers: []string{"other.io/f"}}}
	want := patchFields{"metadata": patchFields{"labels": patchFields{"team": "a", "karpenter.sh/registered": "true"}, "annotations": patchFields{"note": "x"},
		"finalizers": []string{"other.io/f", "karpenter.sh/termination"}, "ownerReferences": []metav1.OwnerReference{owner}}}
	if diff := cmp.Diff(want, registrationPatch(o, claim)); diff != "" {
		t.Error(diff)
	}
	o = &corev1.Node{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"team": "a", "karpenter.sh/registered": "true"}, Annotations: map[string]string{"note": "x"},
		Finalizers: []string{"karpenter.sh/termination"}, OwnerReferences: []metav1.OwnerReference{owner}}}
	if got := registrationPatch(o, claim); got != nil {
		t.Errorf("a registered node is changed: %v", got)
	}
}

// A node of stopped capacity is cordoned instead of tainted, so that DaemonSets come; one that was started is neither.
func TestRegistrationOfStoppedCapacity(t *testing.T) {
	claim := cluster.Claim{UID: "u", Annotations: map[string]string{karpv1.AnnotationStoppedCapacity: "true"}}
	started := claim
	started.Conditions = []cluster.Condition{{Type: karpv1.ConditionStopped, Status: "False", Reason: karpv1.ReasonStarting}}
	own := taint("team", "a", "NoSchedule")
	for _, c := range []struct {
		name  string
		claim cluster.Claim
		has   corev1.NodeSpec
		want  any
	}{
		{"warming", claim, corev1.NodeSpec{Taints: []corev1.Taint{own, taint(karpv1.TaintStoppedCapacity, "", "NoSchedule")}},
			patchFields{"taints": []corev1.Taint{own}, "unschedulable": true}},
		{"again", claim, corev1.NodeSpec{Taints: []corev1.Taint{own}, Unschedulable: true}, nil},
		{"started", started, corev1.NodeSpec{Taints: []corev1.Taint{taint(karpv1.TaintStoppedCapacity, "", "NoSchedule")}},
			patchFields{"taints": []corev1.Taint{}}},
	} {
		if diff := cmp.Diff(c.want, registrationPatch(&corev1.Node{Spec: c.has}, c.claim)["spec"]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}
