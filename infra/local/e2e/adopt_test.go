package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

// lookAgain is how long functions believe what they saw of Karpenter's lease, and a little more.
const lookAgain = 6 * time.Second

// acting has disruption act at once, and nodes as plain as Karpenter's.
func acting(o *env.Options) {
	maps.Copy(o.Env, map[string]string{"DISRUPTION": "act", "NOMINATED_PODS_ONLY": "false"})
}

// asKarpenterLeaves makes the only NodeClaim, its node and its instance look as Karpenter 1.14 leaves them and nothing
// of Joiner's is left on them. It returns the claim.
func (w *world) asKarpenterLeaves() *unstructured.Unstructured {
	w.t.Helper()
	old := w.oneClaim()
	node := w.nodes()[0]
	w.patchNode(node.Name, `{"metadata":{"ownerReferences":null}}`) // or it would be collected with the old claim
	w.lose(old.GetName())

	c := old.DeepCopy()
	unstructured.RemoveNestedField(c.Object, "metadata")
	c.SetName("default-k7rp2")
	c.SetGenerateName("default-")
	labels := old.GetLabels()
	delete(labels, "joiner.sh/instance")
	c.SetLabels(labels)
	c.SetFinalizers([]string{"karpenter.sh/termination"})
	c.SetOwnerReferences(old.GetOwnerReferences())
	annotations := map[string]string{"karpenter.k8s.aws/tagged": "true", "compatibility.karpenter.k8s.aws/cluster-name-tagged": "true",
		"karpenter.sh/nodeclaim-min-values-relaxed": "false"}
	for k, v := range old.GetAnnotations() {
		if !strings.HasPrefix(k, "joiner.sh/") {
			annotations[k] = v // the hashes, which are the same numbers in both
		}
	}
	c.SetAnnotations(annotations)
	if _, err := w.Kube.Dynamic.Resource(env.NodeClaims()).Create(w.ctx, c, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
	made := w.amend(env.NodeClaims(), c.GetName(), func(made *unstructured.Unstructured) error {
		made.Object["status"] = old.DeepCopy().Object["status"]
		conditions, _, _ := unstructured.NestedSlice(made.Object, "status", "conditions")
		conditions = append(conditions, map[string]any{"type": "Consolidatable", "status": "True", "reason": "Consolidatable", "message": "",
			"lastTransitionTime": time.Now().UTC().Format(time.RFC3339)})
		return unstructured.SetNestedSlice(made.Object, conditions, "status", "conditions")
	})
	w.patchNode(node.Name, fmt.Sprintf(`{"metadata":{"ownerReferences":[{"apiVersion":"karpenter.sh/v1","kind":"NodeClaim","name":%q,"uid":%q,"blockOwnerDeletion":true}]}}`,
		made.GetName(), made.GetUID()))
	w.Cloud.ChangeTags(w.living()[0].ID, func(tags map[string]string) {
		delete(tags, "joiner.sh/nodeclaim-uid")
		tags["karpenter.sh/nodeclaim"] = made.GetName()
	})
	b, err := json.Marshal([]any{made.Object["metadata"], w.living()[0].Tags})
	if err != nil || strings.Contains(strings.ReplaceAll(string(b), `"manager":"joiner"`, ""), "joiner.sh") {
		w.t.Fatalf("something of Joiner's is left: %s, %v", b, err)
	}
	return made
}

func (w *world) patchNode(name, patch string) {
	w.t.Helper()
	if _, err := w.Kube.CoreV1().Nodes().Patch(w.ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// karpenterLeads has somebody hold Karpenter's leader lease, or nobody any more.
func (w *world) karpenterLeads(leads bool) {
	w.t.Helper()
	client := w.Kube.CoordinationV1().Leases("kube-system")
	if !leads {
		if err := client.Delete(w.ctx, "karpenter-leader-election", metav1.DeleteOptions{}); err != nil {
			w.t.Fatal(err)
		}
		return
	}
	holder, seconds, renewed := "karpenter-1", int32(3600), metav1.NewMicroTime(time.Now())
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Name: "karpenter-leader-election"},
		Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder, LeaseDurationSeconds: &seconds, RenewTime: &renewed}}
	if _, err := client.Create(w.ctx, lease, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// A node of Karpenter's goes on under Joiner: it is neither leaked nor drifted nor replaced, and its end is as orderly
// as that of any.
func TestANodeOfKarpentersIsAdoptedInPlace(t *testing.T) {
	shortrun.Skip(t)
	w := start(t, acting)
	w.ready()
	w.run(deployment{name: "web", replicas: 2})
	claim := w.asKarpenterLeaves()
	before := w.living()

	w.until("the instance is old enough to be called leaked", func() (string, bool) {
		age := time.Since(before[0].Launched)
		return age.String(), age > garbageCollectionMinAge+2*time.Second
	}, "refresh", "provision", "lifecycle", "disrupt")
	w.tick("refresh", "provision", "lifecycle", "disrupt", "lifecycle")
	w.started(1)
	after := w.oneClaim()
	if after.GetUID() != claim.GetUID() || after.GetDeletionTimestamp() != nil || len(w.living()) != 1 || w.up("web") != 2 {
		t.Fatalf("the claim is %s, want %s; deleted at %v; %d instances, %d pods up", after.GetUID(), claim.GetUID(), after.GetDeletionTimestamp(), len(w.living()), w.up("web"))
	}
	if k := status(*after, "Drifted"); k["status"] == "True" {
		t.Errorf("it is called drifted: %v", k)
	}
	if id := after.GetLabels()["joiner.sh/instance"]; id != before[0].ID {
		t.Errorf("it is labelled with instance %q, by which notices find it; want %s", id, before[0].ID)
	}
	if diff := cmp.Diff(claim.Object["spec"], after.Object["spec"]); diff != "" {
		t.Errorf("its spec was changed:\n%s", diff)
	}

	if err := w.Kube.Dynamic.Resource(env.NodeClaims()).Delete(w.ctx, claim.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("its pods run elsewhere and it is gone", func() (string, bool) {
		n, gone := len(w.claims()), w.Cloud.DescribedInstances()[0].State
		return fmt.Sprintf("%d claims, %d pods up, the first instance is %s", n, w.up("web"), gone), n == 1 && w.up("web") == 2 && gone == "terminated"
	}, "provision", "lifecycle")
	w.started(2)
}

// While Karpenter leads, a Joiner that may act touches nothing, and what it finds afterwards it goes on with. What it
// leaves is what Karpenter needs: finalizers, hashes in Karpenter's versions, and tags.
func TestTheWayBackIsOpenAtAnyTime(t *testing.T) {
	w := start(t, acting)
	w.ready()
	w.run(deployment{name: "web", replicas: 2})
	w.tick("lifecycle")
	c := w.oneClaim()
	a := c.GetAnnotations()
	if a["karpenter.sh/nodepool-hash-version"] != "v3" || a["karpenter.k8s.aws/ec2nodeclass-hash-version"] != "v6" ||
		a["karpenter.sh/nodepool-hash"] == "" || a["karpenter.k8s.aws/ec2nodeclass-hash"] == "" {
		t.Errorf("hashes: %v", a)
	}
	if diff := cmp.Diff([]string{"karpenter.sh/termination"}, c.GetFinalizers()); diff != "" {
		t.Errorf("finalizers (-want +got):\n%s", diff)
	}
	tags := w.living()[0].Tags
	want := map[string]string{"karpenter.sh/nodepool": "default", "karpenter.k8s.aws/ec2nodeclass": "default", "karpenter.sh/nodeclaim": c.GetName(),
		"eks:eks-cluster-name": "demo", "kubernetes.io/cluster/demo": "owned"}
	for k, v := range want {
		if tags[k] != v {
			t.Errorf("tag %s is %q, want %q", k, tags[k], v)
		}
	}
	if taints := w.nodes()[0].Spec.Taints; len(taints) > 0 {
		t.Errorf("taints: %v", taints)
	}

	w.karpenterLeads(true)
	led := time.Now()
	w.until("what functions saw of the lease before is too old to be believed", func() (string, bool) {
		age := time.Since(led)
		return age.String(), age > lookAgain
	})
	if err := w.Kube.CoreV1().Nodes().Delete(w.ctx, w.nodes()[0].Name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.apply(deployment{name: "more", replicas: 1, alone: true})
	w.exist("more", 1)
	before := w.image()
	w.tick("refresh", "provision", "lifecycle", "disrupt", "provision", "lifecycle")
	if diff := cmp.Diff(before, w.image()); diff != "" {
		t.Errorf("while Karpenter leads something was changed:\n%s", diff)
	}
	w.karpenterLeads(false)
	w.until("Joiner goes on", func() (string, bool) {
		return fmt.Sprintf("%d and %d pods up, %d claims", w.up("web"), w.up("more"), len(w.claims())), w.up("web") == 2 && w.up("more") == 1 && w.claims()[0].GetUID() != c.GetUID()
	}, "provision", "lifecycle")
}
