package e2e_test

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/env"
	"joiner.sh/pkg/testing/shortrun"
)

const budget = `
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata: {name: web}
spec: {minAvailable: 2, selector: {matchLabels: {app: web}}}
`

// Deleting a Node or a NodeClaim by hand drains the node within budgets, ends the instance, and the pods run elsewhere.
func TestWhatIsDeletedByHandIsDrainedFirst(t *testing.T) {
	for kind, remove := range map[string]func(w *world, node, claim string) error{
		"node": func(w *world, node, _ string) error {
			return w.Kube.CoreV1().Nodes().Delete(w.ctx, node, metav1.DeleteOptions{})
		},
		"nodeclaim": func(w *world, _, claim string) error {
			return w.Kube.Dynamic.Resource(env.NodeClaims()).Delete(w.ctx, claim, metav1.DeleteOptions{})
		},
	} {
		t.Run(kind, func(t *testing.T) {
			if kind == "nodeclaim" {
				shortrun.Skip(t)
			}
			w := start(t)
			w.ready()
			w.apply(text(budget))
			w.run(deployment{name: "web", replicas: 3})
			node, old := w.pods("web")[0].Spec.NodeName, w.living()
			if len(old) != 1 {
				t.Fatalf("%d instances, want all three pods on one", len(old))
			}
			claim := w.oneClaim().GetName()
			w.until("the budget is met", func() (string, bool) {
				b, err := w.Kube.PolicyV1().PodDisruptionBudgets("default").Get(w.ctx, "web", metav1.GetOptions{})
				return fmt.Sprint(b.Status.DisruptionsAllowed, err), err == nil && b.Status.DisruptionsAllowed == 1
			})
			lowest := w.watch("web")
			if err := remove(w, node, claim); err != nil {
				t.Fatal(err)
			}
			w.until("the node is replaced", func() (string, bool) { return w.evacuated(node, claim, old[0]) }, "lifecycle", "provision")
			w.started(2)
			if n := lowest(); n != 2 {
				t.Errorf("at one time %d pods were up, want 2: one after the other, as the budget says", n)
			}
		})
	}
}

// watch counts the pods of a Deployment that are up, many times a second, until the function that it returns is called;
// that gives the lowest count.
func (w *world) watch(app string) (lowest func() int) {
	ctx, stop := context.WithCancel(w.ctx)
	least := make(chan int, 1)
	go func() {
		n := math.MaxInt
		defer func() { least <- n }()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			if pods, err := w.list(ctx, app); err == nil {
				n = min(n, ready(pods))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	}()
	return func() int { stop(); return <-least }
}

// evacuated reports whether nothing is left of a node and its three pods run elsewhere.
func (w *world) evacuated(node, claim string, instance awsemulator.Instance) (saw string, ok bool) {
	w.t.Helper()
	left, nodeGone, claimGone := w.isNodeGone(node, claim, instance)
	up, state := w.up("web"), ""
	for _, i := range w.Cloud.DescribedInstances() {
		if i.ID == instance.ID {
			state = i.State
		}
	}
	for _, p := range w.pods("web") {
		if p.Spec.NodeName == node && !nodeGone {
			up--
		}
	}
	return fmt.Sprintf("%s, instance %s, %d pods elsewhere", left, state, up), nodeGone && claimGone && state == "terminated" && up == 3
}

// isNodeGone reports whether the Node of an instance and its NodeClaim are no longer there. EC2 may give the next
// instance the same address, and so the next Node the same name: that is another Node.
func (w *world) isNodeGone(node, claim string, instance awsemulator.Instance) (saw string, nodeGone, claimGone bool) {
	w.t.Helper()
	there, nodeErr := w.Kube.CoreV1().Nodes().Get(w.ctx, node, metav1.GetOptions{})
	_, claimErr := w.Kube.Dynamic.Resource(env.NodeClaims()).Get(w.ctx, claim, metav1.GetOptions{})
	nodeGone = apierrors.IsNotFound(nodeErr) || nodeErr == nil && !strings.HasSuffix(there.Spec.ProviderID, "/"+instance.ID)
	claimGone = apierrors.IsNotFound(claimErr)
	return fmt.Sprintf("node gone: %v (%v), claim gone: %v (%v)", nodeGone, nodeErr, claimGone, claimErr), nodeGone, claimGone
}

// An instance that ends behind our back takes its claim and node with it, and the pods come up elsewhere.
func TestAnInstanceThatEndsBehindOurBackIsReplaced(t *testing.T) {
	w := start(t)
	w.ready()
	w.run(deployment{name: "web", replicas: 3})
	node, claim, old := w.pods("web")[0].Spec.NodeName, w.oneClaim().GetName(), w.living()[0]
	if err := w.Cloud.KillInstance(old.ID); err != nil {
		t.Fatal(err)
	}
	w.until("the instance is replaced", func() (string, bool) { return w.evacuated(node, claim, old) }, "lifecycle", "provision")
	w.started(2)
}
