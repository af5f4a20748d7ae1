package e2e_test

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
)

// staticPool is a pool of three nodes that nobody's pods tolerate. One node of it may be disrupted at a time.
const staticPool = `
---
apiVersion: karpenter.sh/v1
kind: NodePool
metadata: {name: fixed}
spec:
  replicas: 3
  disruption: {budgets: [{nodes: "1"}]}
  template:
    spec:
      nodeClassRef: {group: karpenter.k8s.aws, kind: EC2NodeClass, name: fixed}
      taints: [{key: fixed, effect: NoSchedule}]
      requirements:
        - {key: kubernetes.io/arch, operator: In, values: [amd64]}
        - {key: karpenter.sh/capacity-type, operator: In, values: [spot]}
        - {key: karpenter.k8s.aws/instance-category, operator: In, values: [c, m]}
`

// fixedPool plays with a static pool: it has as many nodes as it is to have, whatever is done to it.
func fixedPool(w *world) {
	w.apply(text(staticPool), class{name: "fixed"})
	w.tick("refresh")
	w.nodesOfFixed(3)

	w.patchFixed(`{"spec":{"replicas":5}}`)
	w.nodesOfFixed(5)
	w.patchFixed(`{"spec":{"replicas":2}}`)
	kept := w.nodesOfFixed(2)

	gone := kept[0].GetName()
	node, _, _ := unstructured.NestedString(kept[0].Object, "status", "nodeName")
	if err := w.Kube.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
	w.until("the claim of the deleted node is gone", func() (string, bool) {
		for _, c := range w.claimsOf("fixed") {
			if c.GetName() == gone {
				return "it is there", false
			}
		}
		return "", true
	}, "provision", "lifecycle")
	old := map[string]bool{}
	for _, c := range w.nodesOfFixed(2) {
		old[c.GetName()] = true
	}
	if old[gone] || !old[kept[1].GetName()] {
		w.t.Errorf("after node %s was deleted the pool has the claims %v, want %s and a new one", node, old, kept[1].GetName())
	}

	w.patchFixed(`{"spec":{"template":{"metadata":{"labels":{"generation":"second"}}}}}`)
	w.until("nodes of the new template are all that is left", func() (string, bool) {
		going, ready, left := 0, 0, 0
		for _, c := range w.claimsOf("fixed") {
			switch {
			case old[c.GetName()] && c.GetDeletionTimestamp() != nil:
				going++
			case status(c, "Initialized")["status"] == "True":
				ready++
			}
			if old[c.GetName()] {
				left++
			}
		}
		if going > 1 || ready < 2 {
			w.t.Fatalf("%d nodes go at once and %d are in service, want at most 1 and at least 2", going, ready)
		}
		return fmt.Sprintf("%d of the old nodes", left), left == 0
	}, "disrupt", "provision", "lifecycle")
	for _, c := range w.nodesOfFixed(2) {
		if c.GetLabels()["generation"] != "second" {
			w.t.Errorf("claim %s has not the label of the template: %v", c.GetName(), c.GetLabels())
		}
	}
}

// nodesOfFixed waits until the static pool has so many nodes, all in service, and as many instances, and returns their
// claims.
func (w *world) nodesOfFixed(want int) (claims []unstructured.Unstructured) {
	w.t.Helper()
	w.until(fmt.Sprintf("the static pool has %d nodes", want), func() (string, bool) {
		claims = w.claimsOf("fixed")
		ready, ids := 0, ""
		for _, c := range claims {
			if status(c, "Initialized")["status"] == "True" && c.GetDeletionTimestamp() == nil {
				ready++
			}
			ids += providerID(&c) + " "
		}
		running := 0
		for _, i := range w.living() {
			if strings.Contains(ids, i.ID+" ") {
				running++
			}
		}
		all := len(w.living())
		return fmt.Sprintf("%d claims, %d ready, %d instances of them, %d in all", len(claims), ready, running, all),
			len(claims) == want && ready == want && running == want && all == len(w.claims())
	}, "provision", "lifecycle")
	return claims
}

func (w *world) claimsOf(pool string) (out []unstructured.Unstructured) {
	w.t.Helper()
	for _, c := range w.claims() {
		if c.GetLabels()["karpenter.sh/nodepool"] == pool {
			out = append(out, c)
		}
	}
	return out
}

func (w *world) patchFixed(patch string) {
	w.t.Helper()
	if _, err := w.Kube.Dynamic.Resource(env.NodePools()).Patch(w.ctx, "fixed", types.MergePatchType, []byte(patch), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
