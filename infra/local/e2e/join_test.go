package e2e_test

import (
	"cmp"
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/pkg/testing/shortrun"
)

// A node that never joins costs its claim and its instance after the registration timeout, 15 minutes by default; the
// claim's clock is put back instead of waiting. The pod gets another node.
func TestANodeThatNeverJoinsIsReplaced(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	// Asked when an instance runs, which may be after the claim says that it is launched.
	var mu sync.Mutex
	var first string
	w.Kubelets.SetBehavior(func(i kubelet.Instance) kubelet.Behavior {
		mu.Lock()
		defer mu.Unlock()
		first = cmp.Or(first, i.ID)
		return kubelet.Behavior{NeverJoin: i.ID == first}
	})
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.until("an instance is launched", func() (string, bool) {
		n := len(w.claims())
		return fmt.Sprint(n, " claims"), n == 1 && status(w.claims()[0], "Launched")["status"] == "True"
	}, "provision")
	old := w.oneClaim()

	w.age(old.GetName(), "Registered", 14*time.Minute)
	w.tick("lifecycle", "provision")
	if c := w.oneClaim(); c.GetUID() != old.GetUID() || c.GetDeletionTimestamp() != nil || len(w.living()) != 1 {
		t.Fatal("the claim did not live for 15 minutes, or the pod did not wait for it")
	}
	w.age(old.GetName(), "Registered", 15*time.Minute)
	w.serve("web", 1)
	w.until("the first instance is gone", func() (string, bool) {
		all := w.Cloud.DescribedInstances()
		return all[0].State, all[0].State == "terminated" && len(w.claims()) == 1
	}, "lifecycle")
	if c := w.oneClaim(); c.GetUID() == old.GetUID() {
		t.Error("the claim of the node that never joined is still there")
	}
	w.started(2)
}

// age puts the time at which a claim's condition changed back.
func (w *world) age(claim, condition string, by time.Duration) {
	w.t.Helper()
	aged := false
	w.amend(env.NodeClaims(), claim, func(obj *unstructured.Unstructured) error {
		all, _, err := unstructured.NestedSlice(obj.Object, "status", "conditions")
		if err != nil {
			return err
		}
		for _, c := range all {
			if m, ok := c.(map[string]any); ok && m["type"] == condition {
				m["lastTransitionTime"] = time.Now().Add(-by).UTC().Format(time.RFC3339)
				aged = true
			}
		}
		return unstructured.SetNestedSlice(obj.Object, all, "status", "conditions")
	})
	if !aged {
		w.t.Fatalf("claim %s has no condition %s", claim, condition)
	}
}
