package e2e_test

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
	"joiner.sh/infra/local/kubelet"
	"joiner.sh/pkg/testing/shortrun"
)

// garbageCollectionMinAge is that of the functions.
const garbageCollectionMinAge = 30 * time.Second

// An instance whose claim is lost is nobody's: it ends, but not before it is old enough to be no launch under way.
func TestALeakedInstanceIsTerminatedOnceItIsOldEnough(t *testing.T) {
	shortrun.Skip(t)
	w := start(t)
	w.ready()
	w.Kubelets.SetBehavior(func(kubelet.Instance) kubelet.Behavior { return kubelet.Behavior{NeverJoin: true} })
	w.apply(deployment{name: "web", replicas: 1})
	w.exist("web", 1)
	w.until("an instance is launched", func() (string, bool) { n := len(w.living()); return fmt.Sprint(n, " instances"), n == 1 }, "provision")
	leaked := w.living()[0]
	if err := w.Kube.AppsV1().Deployments("default").Delete(w.ctx, "web", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// or they would get another node
	w.until("its pods are gone", func() (string, bool) { n := len(w.pods("web")); return fmt.Sprint(n, " pods"), n == 0 })
	w.settled()
	w.lose(w.oneClaim().GetName())
	if n := len(w.claims()); n != 0 {
		t.Fatalf("%d claims are left, want none", n)
	}

	w.tick("lifecycle")
	if age := time.Since(leaked.Launched); age < garbageCollectionMinAge && len(w.living()) != 1 {
		t.Fatalf("the instance was ended when it was %s old, want not before %s", age, garbageCollectionMinAge)
	}
	w.until("the leaked instance ends", func() (string, bool) { n := len(w.living()); return fmt.Sprint(n, " instances"), n == 0 }, "lifecycle")
	if age := time.Since(leaked.Launched); age < garbageCollectionMinAge {
		t.Errorf("the instance was ended when it was %s old, want not before %s", age, garbageCollectionMinAge)
	}
	w.started(1)
}

// lose takes a claim away as somebody does who removes finalizers by hand.
func (w *world) lose(claim string) {
	w.t.Helper()
	r := w.Kube.Dynamic.Resource(env.NodeClaims())
	if _, err := r.Patch(w.ctx, claim, types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
	if err := r.Delete(w.ctx, claim, metav1.DeleteOptions{}); err != nil {
		w.t.Fatal(err)
	}
}
