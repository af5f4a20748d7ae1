package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

// A budget that allows nothing and a protected pod keep a node as long as they say so; the node tells who it waits for,
// and nothing is asked of the eviction API that can only be refused.
func TestABudgetAndAnAnnotationHoldADrainUp(t *testing.T) {
	w := start(t)
	w.ready()
	w.apply(text(budget), text(strings.Replace(deployment{name: "pinned", replicas: 1}.String(), "metadata: {labels: {app: pinned",
		"metadata: {annotations: {karpenter.sh/do-not-disrupt: \"true\"}, labels: {app: pinned", 1)))
	w.exist("pinned", 1)
	w.run(deployment{name: "web", replicas: 2})
	w.serve("pinned", 1)
	claim, node, instance := w.oneClaim().GetName(), w.pods("web")[0].Spec.NodeName, w.living()[0]
	if err := w.Kube.Dynamic.Resource(env.NodeClaims()).Delete(w.ctx, claim, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the node tells who it waits for", func() (string, bool) {
		said := strings.Join(w.events("Node", node), "\n")
		return said, strings.Contains(said, "FailedDraining") && strings.Contains(said, "PodDisruptionBudget default/web") && strings.Contains(said, "karpenter.sh/do-not-disrupt")
	}, "lifecycle")
	for range 3 {
		w.tick("lifecycle", "provision")
	}
	if n := len(w.pods("web")) + len(w.pods("pinned")); n != 3 || len(w.living()) == 0 {
		t.Fatalf("%d pods and %d instances are left", n, len(w.living()))
	}
	for _, p := range append(w.pods("web"), w.pods("pinned")...) {
		if p.Spec.NodeName != node {
			t.Errorf("pod %s is on %s, want it where it was", p.Name, p.Spec.NodeName)
		}
	}
	if strings.Contains(w.logs.String(), `"outcome":"refused"`) {
		t.Error("the eviction API was asked in vain")
	}
	if err := w.Kube.PolicyV1().PodDisruptionBudgets("default").Delete(w.ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, p := range w.pods("pinned") {
		if _, err := w.Kube.CoreV1().Pods("default").Patch(w.ctx, p.Name, types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"karpenter.sh/do-not-disrupt":null}}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	w.waitUntilGone(node, claim, instance, "lifecycle", "provision")
}

// The instance of a drained node does not end before its volume is detached. A volume that several nodes may have is no
// reason.
func TestAnAttachedVolumeIsWaitedFor(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	claim, node, instance := w.oneClaim().GetName(), w.pods("web")[0].Spec.NodeName, w.living()[0]
	w.attach(node, "own", corev1.ReadWriteOnce)
	w.attach(node, "shared", corev1.ReadWriteMany)
	if err := w.Kube.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("the volume is waited for", func() (string, bool) {
		k := w.condition(env.NodeClaims(), claim, "VolumesDetached")
		return fmt.Sprint(k), k["status"] == "Unknown" && k["reason"] == "AwaitingVolumeDetachment" && k["message"] == "own"
	}, "lifecycle", "provision")
	w.until("the node tells what it waits for", func() (string, bool) {
		said := w.events("Node", node)
		return fmt.Sprint(said), slices.Contains(said, "AwaitingVolumeDetachment: waiting for volumes to be detached: own")
	}, "lifecycle")
	for _, i := range w.Cloud.DescribedInstances() {
		if strings.HasSuffix(providerID(w.claim(claim)), i.ID) && i.State != "running" {
			t.Errorf("the instance is %s while its volume is attached", i.State)
		}
	}
	if err := w.Kube.StorageV1().VolumeAttachments().Delete(w.ctx, "own", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.waitUntilGone(node, claim, instance, "lifecycle", "provision")
}

const byHand = `
---
apiVersion: karpenter.sh/v1
kind: NodeClaim
metadata: {name: mine, labels: {team: a}}
spec:
  nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: default}
  requirements:
  - {key: karpenter.sh/capacity-type, operator: In, values: [on-demand]}
  - {key: node.kubernetes.io/instance-type, operator: In, values: [m5.large]}
  expireAfter: Never
`

// A NodeClaim that a user made gets its node, without a pool, and takes everything along when it is deleted.
func TestAHandMadeNodeClaimIsLaunched(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.apply(text(byHand))
	w.until("the claim is in service", func() (string, bool) {
		k := w.condition(env.NodeClaims(), "mine", "Ready")
		return fmt.Sprint(k), k["status"] == "True"
	}, "provision", "lifecycle")
	c := w.claim("mine")
	if !slices.Contains(c.GetFinalizers(), "karpenter.sh/termination") || len(c.GetOwnerReferences()) != 0 {
		t.Errorf("finalizers %v, owners %v", c.GetFinalizers(), c.GetOwnerReferences())
	}
	nodes, i := w.nodes(), w.living()
	if len(nodes) != 1 || len(i) != 1 || i[0].Type != "m5.large" || i[0].CapacityType != "on-demand" {
		t.Fatalf("%d nodes, instances %+v", len(nodes), i)
	}
	l := nodes[0].Labels
	if _, pooled := l["karpenter.sh/nodepool"]; pooled || l["team"] != "a" || l["karpenter.k8s.aws/ec2nodeclass"] != "default" || l["karpenter.sh/initialized"] != "true" {
		t.Errorf("labels of the node: %v", l)
	}
	if err := w.Kube.Dynamic.Resource(env.NodeClaims()).Delete(w.ctx, "mine", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.waitUntilGone(nodes[0].Name, "mine", i[0], "lifecycle")
	if n := len(w.living()); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// A deleted NodePool takes its NodeClaims along, and those drain in order; the status said what it had.
func TestADeletedPoolTakesItsNodesAlong(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 1})
	claim, node, instance := w.oneClaim().GetName(), w.pods("web")[0].Spec.NodeName, w.living()[0]
	pools := w.Kube.Dynamic.Resource(env.NodePools())
	w.until("the pool counts its node", func() (string, bool) {
		p, err := pools.Get(w.ctx, "default", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		nodes, _, _ := unstructured.NestedInt64(p.Object, "status", "nodes")
		cpu, _, _ := unstructured.NestedString(p.Object, "status", "resources", "cpu")
		healthy := status(*p, "NodeRegistrationHealthy")
		return fmt.Sprint(nodes, cpu, healthy), nodes == 1 && cpu != "" && cpu != "0" && healthy["status"] == "True"
	}, "lifecycle")
	if err := pools.Delete(w.ctx, "default", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.waitUntilGone(node, claim, instance, "lifecycle")
	if n := len(w.living()); n != 0 {
		t.Errorf("%d instances are left", n)
	}
}

// claim is one NodeClaim.
func (w *world) claim(name string) *unstructured.Unstructured {
	w.t.Helper()
	c, err := w.Kube.Dynamic.Resource(env.NodeClaims()).Get(w.ctx, name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// waitUntilGone ticks until neither the Node of the instance nor the claim is there.
func (w *world) waitUntilGone(node, claim string, instance awsemulator.Instance, functions ...string) {
	w.t.Helper()
	w.until("node and claim are gone", func() (string, bool) {
		saw, nodeGone, claimGone := w.isNodeGone(node, claim, instance)
		return saw, nodeGone && claimGone
	}, functions...)
}

// events are what Joiner told of an object without a namespace, as "Reason: message".
func (w *world) events(kind, name string) []string {
	w.t.Helper()
	list, err := w.Kube.CoreV1().Events("default").List(w.ctx, metav1.ListOptions{FieldSelector: "involvedObject.kind=" + kind + ",involvedObject.name=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, e := range list.Items {
		if e.ReportingController == "joiner" {
			out = append(out, e.Reason+": "+e.Message)
		}
	}
	return out
}

// attach makes a volume of that access mode which is attached to the node, as the attacher of a CSI driver would.
func (w *world) attach(node, volume string, mode corev1.PersistentVolumeAccessMode) {
	w.t.Helper()
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: corev1.PersistentVolumeSpec{
		AccessModes:            []corev1.PersistentVolumeAccessMode{mode},
		Capacity:               corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "ebs.csi.aws.com", VolumeHandle: "vol-" + volume}}}}
	if _, err := w.Kube.CoreV1().PersistentVolumes().Create(w.ctx, pv, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "ebs.csi.aws.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}}}
	if _, err := w.Kube.StorageV1().VolumeAttachments().Create(w.ctx, a, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
