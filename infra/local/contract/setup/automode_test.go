package setup

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
)

// autoModeObjects are what EKS Auto Mode has in a cluster: its own NodeClass, the two NodePools that it makes, and the
// NodeClaim of a node.
const autoModeObjects = `apiVersion: eks.amazonaws.com/v1
kind: NodeClass
metadata: {name: default, finalizers: [eks.amazonaws.com/termination]}
spec: {role: AmazonEKSAutoNodeRole}
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: general-purpose, labels: {app.kubernetes.io/managed-by: eks}}
spec:
  template:
    spec:
      nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}
      requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
      terminationGracePeriod: 24h0m0s
      expireAfter: 336h
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: general-purpose-1, finalizers: [karpenter.sh/termination], labels: {karpenter.sh/nodepool: general-purpose}}
spec:
  nodeClassRef: {group: eks.amazonaws.com, kind: NodeClass, name: default}
  requirements: [{key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}]
`

// testAutoMode: what EKS Auto Mode has in the cluster is byte for byte as it was after setup was asked to create, to
// update and to delete, with either choice for nodes, and after all functions ran.
func (w *world) testAutoMode(t *testing.T) {
	awsemulator.SetAutoMode(w.Cloud, true)
	defer awsemulator.SetAutoMode(w.Cloud, false)
	w.serveAutoMode(t)
	if err := w.Kube.ApplyManifest(t.Context(), []byte(autoModeObjects)); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Kube.CoreV1().Nodes().Create(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "i-0auto", Finalizers: []string{"karpenter.sh/termination"},
		Labels: map[string]string{"eks.amazonaws.com/compute-type": "auto", "karpenter.sh/nodepool": "general-purpose"}}, Spec: corev1.NodeSpec{ProviderID: "aws:///us-west-2a/i-0auto"}},
		metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	before := w.autoModeState(t)
	w.ask(t, "Update", preflightType, "", nil)
	w.ask(t, "Create", setupType, "", nil)
	w.ask(t, "Update", setupType, "", map[string]any{"Manifests": "other"})
	for _, function := range []string{"refresh", "provision", "lifecycle", "disrupt"} {
		w.tick(t, function)
	}
	w.ask(t, "Delete", setupType, "", map[string]any{"OnDelete": "drain"})
	w.ask(t, "Create", setupType, "", nil)
	w.ask(t, "Delete", setupType, "", nil)
	w.ask(t, "Create", setupType, "", nil)
	if diff := cmp.Diff(before, w.autoModeState(t)); diff != "" {
		t.Errorf("objects of EKS Auto Mode (-before +after):\n%s", diff)
	}
	w.removeAutoMode(t)
}

// serveAutoMode makes the kind NodeClass of EKS, and has the CRDs of karpenter.sh carry what only EKS writes.
func (w *world) serveAutoMode(t *testing.T) {
	t.Helper()
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "nodeclasses.eks.amazonaws.com"},
		"spec": map[string]any{"group": "eks.amazonaws.com", "scope": "Cluster",
			"names":    map[string]any{"plural": "nodeclasses", "singular": "nodeclass", "kind": "NodeClass", "listKind": "NodeClassList"},
			"versions": []any{map[string]any{"name": "v1", "served": true, "storage": true, "schema": map[string]any{"openAPIV3Schema": anything}}}}}}
	if err := w.Kube.ApplyObject(t.Context(), crd); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"nodepools.karpenter.sh", "nodeclaims.karpenter.sh"} {
		w.patch(t, name, "", `{"metadata":{"labels":{"app.kubernetes.io/managed-by":"eks"},"annotations":{"eks.amazonaws.com/version":"1"}}}`)
	}
	eventually(t, "the NodeClass of EKS is served", func(ctx context.Context) (string, bool) {
		_, err := w.Kube.Dynamic.Resource(eksNodeClasses()).List(ctx, metav1.ListOptions{})
		if err != nil {
			return err.Error(), false
		}
		return "", true
	})
}

func eksNodeClasses() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "eks.amazonaws.com", Version: "v1", Resource: "nodeclasses"}
}

// autoModeState is what EKS Auto Mode has in the cluster, as JSON by kind and name.
func (w *world) autoModeState(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, one := range []struct {
		at   schema.GroupVersionResource
		name string
	}{
		{crds(), "nodepools.karpenter.sh"}, {crds(), "nodeclaims.karpenter.sh"}, {crds(), "nodeclasses.eks.amazonaws.com"},
		{eksNodeClasses(), "default"}, {env.NodePools(), "general-purpose"}, {env.NodeClaims(), "general-purpose-1"},
		{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "i-0auto"},
	} {
		o, err := w.Kube.Dynamic.Resource(one.at).Get(t.Context(), one.name, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if one.at.Resource == "nodes" { // the control plane's own controllers judge a node without a kubelet
			unstructured.RemoveNestedField(o.Object, "status")
			unstructured.RemoveNestedField(o.Object, "spec", "taints")
			unstructured.RemoveNestedField(o.Object, "metadata", "resourceVersion")
			unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
			unstructured.RemoveNestedField(o.Object, "metadata", "annotations", "node.alpha.kubernetes.io/ttl")
			if len(o.GetAnnotations()) == 0 {
				o.SetAnnotations(nil)
			}
		}
		text, err := o.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		out[one.at.Resource+"/"+one.name] = string(text)
	}
	return out
}

// removeAutoMode leaves the cluster to the tests that follow.
func (w *world) removeAutoMode(t *testing.T) {
	t.Helper()
	for _, one := range []struct {
		at   schema.GroupVersionResource
		name string
	}{{env.NodeClaims(), "general-purpose-1"}, {schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, "i-0auto"}, {eksNodeClasses(), "default"},
		{env.NodePools(), "general-purpose"}} {
		r := w.Kube.Dynamic.Resource(one.at)
		if _, err := r.Patch(t.Context(), one.name, "application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
		if err := r.Delete(t.Context(), one.name, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
	}
}
