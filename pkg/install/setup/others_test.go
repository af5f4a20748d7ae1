package setup_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	claimsPath = "/apis/karpenter.sh/v1/nodeclaims/"
	nodesPath  = "/api/v1/nodes/"
	classPath  = "/apis/karpenter.k8s.aws/v1/ec2nodeclasses/"
)

// claimOf is a NodeClaim whose class is of the group, with the node of that name.
func claimOf(name, group, kind, node string) *unstructured.Unstructured {
	o := object("NodeClaim", name, "karpenter.sh/termination")
	o.Object["spec"] = map[string]any{"nodeClassRef": map[string]any{"group": group, "kind": kind, "name": "default"}}
	o.Object["status"] = map[string]any{"nodeName": node, "providerID": "aws:///us-west-2a/i-" + name}
	return o
}

func ours(name, node string) *unstructured.Unstructured {
	return claimOf(name, "karpenter.k8s.aws", "EC2NodeClass", node)
}

// autoMode is a cluster in which EKS Auto Mode and Joiner have a node each.
func autoMode() *world {
	foreignNode := object("Node", "auto", "karpenter.sh/termination")
	foreignNode.SetLabels(map[string]string{"eks.amazonaws.com/compute-type": "auto"})
	owned := object("Node", "owned", "karpenter.sh/termination") // Auto Mode's too, still without its label
	owned.SetOwnerReferences([]metav1.OwnerReference{{APIVersion: "karpenter.sh/v1", Kind: "NodeClaim", Name: "theirs2"}})
	byID := object("Node", "renamed", "karpenter.sh/termination")
	byID.Object["spec"] = map[string]any{"providerID": "aws:///us-west-2a/i-theirs"}
	return &world{objects: map[string]*unstructured.Unstructured{
		claimsPath + "mine":   ours("mine", "n"),
		claimsPath + "theirs": claimOf("theirs", "eks.amazonaws.com", "NodeClass", "auto"), claimsPath + "theirs2": claimOf("theirs2", "eks.amazonaws.com", "NodeClass", ""),
		nodesPath + "n": object("Node", "n", "karpenter.sh/termination"), nodesPath + "auto": foreignNode, nodesPath + "owned": owned, nodesPath + "renamed": byID,
		classPath + "default": object("EC2NodeClass", "default", "karpenter.k8s.aws/termination"),
	}}
}

// EKS Auto Mode keeps NodeClaims and Nodes with the same finalizer, and no leader lease in the cluster. Removing Joiner
// with keep leaves them byte for byte as they are.
func TestKeepLeavesTheNodesOfOtherProvidersAlone(t *testing.T) {
	w := autoMode()
	if err := newSetup(w).RemoveFromCluster(t.Context(), false, 0); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"patch " + claimsPath + "mine map[metadata:map[finalizers:[] resourceVersion:7]]",
		"patch " + nodesPath + "n map[metadata:map[finalizers:[] resourceVersion:7]]",
		"patch " + classPath + "default map[metadata:map[finalizers:[] resourceVersion:7]]",
	}
	if diff := cmp.Diff(want, w.done); diff != "" {
		t.Errorf("keep (-want +got):\n%s", diff)
	}
}

// Removing Joiner with drain ends its own nodes only, and does not wait for those of others.
func TestDrainLeavesTheNodesOfOtherProvidersAlone(t *testing.T) {
	w := autoMode()
	w.onWake = func(w *world) { delete(w.objects, claimsPath+"mine"); delete(w.objects, nodesPath+"n") }
	if err := newSetup(w).RemoveFromCluster(t.Context(), true, time.Minute); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"delete " + claimsPath + "mine", "wake lifecycle",
		"patch " + classPath + "default map[metadata:map[finalizers:[] resourceVersion:7]]",
		"remove leftovers",
	}
	if diff := cmp.Diff(want, w.done); diff != "" {
		t.Errorf("drain (-want +got):\n%s", diff)
	}
}
