package e2e_test

import (
	"flag"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"joiner.sh/infra/local/env"
	v1 "joiner.sh/pkg/api/v1"
)

var stackBefore = flag.String("before", "", "synthesized stack of the release before, with its functions: upgrade from it and back")

// TestUpgradeAndBack: the functions of the release before make nodes, and have begun to replace some and to launch others
// when those of today take their place; then it goes back the same way. Each side finishes what the other began: no
// instance is lost or made twice, no pod loses its node but by a command, and nothing is left in the end.
func TestUpgradeAndBack(t *testing.T) {
	if *stackBefore == "" {
		t.Skip("make upgrade builds the release before, and plays this")
	}
	var options env.Options
	w := start(t, func(o *env.Options) {
		o.Env["DISRUPTION"], o.Stack = "act", *stackBefore
		options = *o
	})
	w.apply(text(pool("default")+`
  disruption: {consolidateAfter: 0s, budgets: [{nodes: 100%}]}
`), class{name: "default"})
	w.tick("refresh")
	for _, step := range []struct{ name, stack string }{{"to this release", ""}, {"back", *stackBefore}} {
		t.Logf("%s", step.name)
		app := "web-" + step.name[:2]
		w.run(deployment{name: app, replicas: 24, cpu: "300m"})
		w.shrink(app, 1)
		w.until("a command is under way", func() (string, bool) {
			n := w.commanded()
			return fmt.Sprint(n, " claims in commands"), n > 0
		}, "disrupt", "provision")
		w.apply(deployment{name: app + "-late", replicas: 3, cpu: "1500m"})
		w.exist(app+"-late", 3)
		w.tick("provision") // launches, and nobody has registered what comes
		instances, claims := len(w.living()), len(w.claims())
		options.Stack = step.stack
		if err := w.Redeploy(w.ctx, options); err != nil {
			t.Fatal(err)
		}
		if n, m := len(w.living()), len(w.claims()); n != instances || m != claims {
			t.Errorf("%s: %d instances and %d claims, want the %d and %d of before", step.name, n, m, instances, claims)
		}
		w.until("what was begun is finished", func() (string, bool) {
			n, up, late := w.commanded(), w.up(app), w.up(app+"-late")
			return fmt.Sprintf("%d claims in commands, %d and %d pods up", n, up, late), n == 0 && up == 1 && late == 3
		}, "provision", "lifecycle", "disrupt")
		w.serve(app, 1)
		if n, m := len(w.living()), len(w.claims()); n != m {
			t.Errorf("%s: %d instances for %d claims", step.name, n, m)
		}
	}
	if err := w.Kube.AppsV1().Deployments("default").DeleteCollection(w.ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	w.until("nothing is left", func() (string, bool) {
		return fmt.Sprintf("%d instances, %d claims, %d nodes", len(w.living()), len(w.claims()), len(w.nodes())),
			len(w.living())+len(w.claims())+len(w.nodes()) == 0
	}, "disrupt", "provision", "lifecycle")
}

// shrink gives a Deployment fewer pods.
func (w *world) shrink(app string, replicas int) {
	w.t.Helper()
	if _, err := w.Kube.AppsV1().Deployments("default").Patch(w.ctx, app, types.MergePatchType, fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, replicas), metav1.PatchOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// commanded counts the claims that a command of disruption is about, candidates and replacements, and those that go.
func (w *world) commanded() (n int) {
	w.t.Helper()
	for _, c := range w.claims() {
		if isCommanded(c) {
			n++
		}
	}
	return n
}

func isCommanded(c unstructured.Unstructured) bool {
	return c.GetDeletionTimestamp() != nil || c.GetAnnotations()[v1.AnnotationDisruptionCommand] != ""
}
