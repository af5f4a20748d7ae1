package kube_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

func TestNodeFromRegistrationToItsEnd(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	claim := c.addClaim(t, k)
	c.addNode(t, c.name, unregistered())
	n := c.readyNode(t, k, c.name)

	step := func(name string, f func() error) {
		t.Helper()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		r.take()
		if err := f(); err != nil {
			t.Fatalf("%s again: %v", name, err)
		}
		if got := r.take(); len(got) != 1 {
			t.Errorf("%s again cost %v, want one look", name, got)
		}
	}
	step("register", func() error { return k.RegisterNode(t.Context(), n, claim) })
	o, err := c.CoreV1().Nodes().Get(t.Context(), c.name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	block := true
	wantOwner := []metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: claim.Name, UID: "x", BlockOwnerDeletion: &block}}
	wantOwner[0].UID = o.OwnerReferences[0].UID
	if diff := cmp.Diff(wantOwner, o.OwnerReferences); diff != "" || string(o.OwnerReferences[0].UID) != claim.UID {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]corev1.Taint{{Key: "team", Value: "a", Effect: "NoSchedule"}, {Key: "warming", Effect: "NoExecute"}}, o.Spec.Taints); diff != "" {
		t.Errorf("taints after registration (-want +got):\n%s", diff)
	}
	for label, want := range map[string]string{"karpenter.sh/registered": "true", "karpenter.sh/nodepool": c.name, "team": "a",
		"karpenter.k8s.aws/ec2nodeclass": c.name, "kubetest": c.name} {
		if o.Labels[label] != want {
			t.Errorf("label %s is %q, want %q", label, o.Labels[label], want)
		}
	}
	if o.Annotations["note"] != "hello" || o.Annotations["karpenter.sh/nodepool-hash"] != "123" || o.Annotations["other.io/noise"] != "x" {
		t.Errorf("annotations: %v", o.Annotations)
	}

	step("initialize", func() error { return k.InitializeNode(t.Context(), n) })
	step("taint", func() error { return k.TaintForTermination(t.Context(), n) })
	n, err = k.ReadNode(t.Context(), c.name)
	if err != nil {
		t.Fatal(err)
	}
	if n.Labels["karpenter.sh/initialized"] != "true" || n.Labels["node.kubernetes.io/exclude-from-external-load-balancers"] != "karpenter" {
		t.Errorf("labels of a node marked for deletion: %v", n.Labels)
	}
	if got := n.Taints[len(n.Taints)-1]; got.String() != "karpenter.sh/disrupted:NoSchedule" {
		t.Errorf("last taint of a node marked for deletion: %s", got)
	}
	c.endNode(t, k, n)
}

func (c env) endNode(t *testing.T, k *kube.Client, n cluster.Node) {
	t.Helper()
	stranger := n
	stranger.UID = "11111111-2222-3333-4444-555555555555"
	if err := errors.Join(k.DeleteNode(t.Context(), stranger), k.ReleaseNode(t.Context(), stranger)); err != nil {
		t.Errorf("a node of another UID: %v, want no error", err)
	}
	err := k.TaintForTermination(t.Context(), stranger)
	if !isConflict(err) {
		t.Errorf("taint a node of another UID: %v, want a ConflictError", err)
	}
	if err := k.DeleteNode(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if now, err := k.ReadNode(t.Context(), n.Name); err != nil || now.Deleting.IsZero() || !now.Finalizer {
		t.Fatalf("a deleted node: %+v %v, want it to wait for our finalizer", now, err)
	}
	for range 2 {
		if err := k.ReleaseNode(t.Context(), n); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := c.CoreV1().Nodes().Get(t.Context(), n.Name, metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the node is still there: %v", err)
	}
	if err := k.DeleteNode(t.Context(), n); err != nil {
		t.Errorf("delete a node that is gone: %v", err)
	}
	err = k.InitializeNode(t.Context(), n)
	if !isConflict(err) {
		t.Errorf("initialize a node that is gone: %v, want a ConflictError", err)
	}
}

// A node that brought its taints itself keeps those; whatever else the claim says reaches it.
func TestRegistrationLeavesTaintsAlone(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	claim := c.addClaim(t, k)
	c.addNode(t, c.name, unregistered())
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), c.name, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"karpenter.sh/do-not-sync-taints":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	n := c.readyNode(t, k, c.name)
	if err := k.RegisterNode(t.Context(), n, claim); err != nil {
		t.Fatal(err)
	}
	n, err := k.ReadNode(t.Context(), c.name)
	if err != nil || len(n.Taints) != 0 || n.Labels["karpenter.sh/registered"] != "true" {
		t.Errorf("after registration: taints %v, labels %v, error %v", n.Taints, n.Labels, err)
	}
}

// A held node boots with a hold that all such nodes share, and is the claim's from registration on.
func TestRegistrationMakesTheHoldItsOwn(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, _ := c.client(t)
	claim := c.addClaim(t, k)
	claim.StartupTaints = []cluster.Taint{holdTaint()}
	c.addNode(t, c.name, corev1.Taint{Key: "joiner.sh/nominated-pods-only", Value: "new", Effect: corev1.TaintEffectNoSchedule})
	if _, err := c.CoreV1().Nodes().Patch(t.Context(), c.name, "application/merge-patch+json",
		[]byte(`{"metadata":{"labels":{"karpenter.sh/do-not-sync-taints":"true"}}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	n := c.readyNode(t, k, c.name)
	for range 2 {
		if err := k.RegisterNode(t.Context(), n, claim); err != nil {
			t.Fatal(err)
		}
	}
	n, err := k.ReadNode(t.Context(), c.name)
	if err != nil || !slices.Equal(n.Taints, []cluster.Taint{holdTaint()}) {
		t.Errorf("after registration: taints %v, error %v", n.Taints, err)
	}
}
