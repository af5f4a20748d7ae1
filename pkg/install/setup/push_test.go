package setup_test

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/pkg/install"
)

const webhook = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/joiner-push"

func address() install.Address {
	return install.Address{URL: "https://x.lambda-url.us-west-2.on.aws/s"}
}

func TestTheWebhookOfPushComesAndGoes(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{}}
	last := func() string { return w.done[len(w.done)-1] }
	s := newSetup(w)
	s.Push = address()
	all, err := install.Objects()
	if err != nil {
		t.Fatal(err)
	}
	n, err := s.InstallObjects(t.Context())
	if err != nil || last() != "apply "+webhook || n != len(all)+1 {
		t.Fatalf("push on: %d objects, the last call is %q (%v), want %d and the webhook applied", n, last(), err, len(all)+1)
	}
	hooks, _, err := unstructured.NestedSlice(w.objects[webhook].Object, "webhooks")
	if err != nil || len(hooks) != 2 {
		t.Errorf("webhooks: %v (%v)", hooks, err)
	}

	s = newSetup(w) // switched off by an update
	if _, err := s.InstallObjects(t.Context()); err != nil || last() != "delete "+webhook {
		t.Errorf("push off: the last call is %q (%v), want the webhook deleted", last(), err)
	}
	delete(w.objects, webhook)
	w.done = nil
	if _, err := newSetup(w).InstallObjects(t.Context()); err != nil || slices.Contains(w.done, "delete "+webhook) {
		t.Errorf("push off without a webhook: the last call is %q (%v)", last(), err)
	}
}

func TestAnObserverHasNoWebhook(t *testing.T) {
	w := &world{objects: map[string]*unstructured.Unstructured{webhook: object("ValidatingWebhookConfiguration", "joiner-push")}}
	s := newSetup(w)
	s.Push, s.Observe = address(), true
	if _, err := s.InstallObjects(t.Context()); err != nil || slices.Contains(w.done, "apply "+webhook) || !slices.Contains(w.done, "delete "+webhook) {
		t.Errorf("%v (%v), want the webhook deleted and not applied", w.done, err)
	}
}

// TestTheWebhookGoesWithTheStack: whatever becomes of nodes, nobody answers calls any more.
func TestTheWebhookGoesWithTheStack(t *testing.T) {
	for name, c := range map[string]struct{ drain, observe, karpenter bool }{
		"keep": {}, "drain": {drain: true}, "observe": {observe: true}, "Karpenter leads": {karpenter: true},
	} {
		t.Run(name, func(t *testing.T) {
			w := &world{objects: map[string]*unstructured.Unstructured{webhook: object("ValidatingWebhookConfiguration", "joiner-push")}}
			if c.karpenter {
				lease := object("Lease", "karpenter-leader-election")
				lease.Object["spec"] = map[string]any{"holderIdentity": "k", "renewTime": "2026-01-01T11:59:59.000000Z", "leaseDurationSeconds": int64(15)}
				w.objects["/apis/coordination.k8s.io/v1/namespaces/karpenter/leases/karpenter-leader-election"] = lease
			}
			s := newSetup(w)
			s.Push, s.Observe = address(), c.observe
			if err := s.RemoveFromCluster(t.Context(), c.drain, time.Minute); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff([]string{"delete " + webhook}, slices.DeleteFunc(w.done, func(s string) bool { return s == "remove leftovers" })); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}
