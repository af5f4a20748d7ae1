package e2e_test

import (
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
)

// One environment serves both: the static pool is played with once the other one is at rest, and must leave that alone.
func TestDisruption(t *testing.T) {
	w := start(t, func(o *env.Options) { o.Env["DISRUPTION"] = "act" })
	for _, c := range []struct {
		name string
		play func(*world)
	}{{"nodes go when their pods need less", fewerPods}, {"a static pool has its number of nodes", fixedPool}} {
		ok := t.Run(c.name, func(t *testing.T) { c.play(&world{Env: w.Env, t: t, ctx: t.Context(), logs: w.logs}) })
		if !ok {
			return
		}
	}
}

// fewerPods: of pods that became few, what is left runs on a node of its size in the end. The replacement is ready
// before the old nodes go, and the pod is never without a node for longer than it takes to start again.
func fewerPods(w *world) {
	t := w.t
	w.apply(text(pool("default")+`
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
`), class{name: "default"})
	w.tick("refresh")
	w.run(deployment{name: "web", replicas: 24, cpu: "300m"})
	running := func(want int) func() (string, bool) {
		return func() (string, bool) {
			n := 0
			for _, p := range w.pods("web") {
				if p.Status.Phase == corev1.PodRunning {
					n++
				}
			}
			return fmt.Sprint(n, " pods run"), n == want
		}
	}
	before := map[string]bool{}
	for _, i := range w.living() {
		before[i.ID] = true
	}
	if _, err := w.Kube.AppsV1().Deployments("default").Patch(w.ctx, "web", types.MergePatchType, []byte(`{"spec":{"replicas":1}}`), metav1.PatchOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("a node of the right size is all that is left", func() (string, bool) {
		living := w.living()
		saw := ""
		for _, i := range living {
			saw += i.Type + " "
		}
		return saw, len(living) == 1 && !before[living[0].ID]
	}, "disrupt", "provision", "lifecycle")
	w.until("the pod runs", running(1), "provision", "lifecycle")
	for range 3 {
		w.tick("disrupt", "provision", "lifecycle")
	}
	if n := len(w.living()); n != 1 {
		t.Errorf("%d instances at rest, want 1", n)
	}
	for _, i := range w.living() {
		t.Logf("%d instances before; %s is left", len(before), i.Type)
	}
}
