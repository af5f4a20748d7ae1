package disrupt_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// disruptedNode is the first node that carries the taint karpenter.sh/disrupted, or nothing.
func disruptedNode(w *fake.World) string {
	for _, name := range strings.Fields(w.Nodes()) {
		if slices.ContainsFunc(w.TaintsOf(name), func(t string) bool { return strings.Contains(t, "disrupted") }) {
			return name
		}
	}
	return ""
}

// Whoever turns disruption off, or asks for reports only, while a node is being replaced has that taken back: no node
// stays tainted, no replacement is left, and no node goes. With disruption off nothing is looked at after that.
func TestWhatIsUnderWayIsTakenBack(t *testing.T) {
	for _, c := range []struct {
		name string
		mode func(*disrupt.Controller)
		pool bool
		off  bool
	}{
		{"off", func(controller *disrupt.Controller) { controller.Rules.ReportDisruption, controller.Off = true, true }, false, true},
		{"the stack reports", func(controller *disrupt.Controller) { controller.Rules.ReportDisruption = true }, false, false},
		{"the pool reports", func(*disrupt.Controller) {}, true, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := controllertest.FreeToDisrupt(t, "WhenEmptyOrUnderutilized", 2)
			w := f.World
			w.ScaleApp("web", 1)
			w.Advance(time.Second)
			before := w.Nodes()
			pass := func(mode func(*disrupt.Controller)) []string {
				t.Helper()
				p := w.Ports(fake.Fault{})
				controller := f.Disrupt(p)
				mode(controller)
				if err := controller.Run(t.Context(), f.Once()); err != nil {
					t.Fatal(err)
				}
				w.Advance(20 * time.Second)
				return p.Calls()
			}
			pass(func(*disrupt.Controller) {})
			pass(func(*disrupt.Controller) {})
			if disruptedNode(w) == "" || len(w.Claims()) != 2 {
				t.Fatalf("nothing was begun: %d claims, nodes\n%s", len(w.Claims()), w.Nodes())
			}
			w.ChangePool(func(p *cluster.Pool) { p.Disruption.ReportOnly = c.pool })
			pass(c.mode)
			if got := w.Nodes(); got != before || disruptedNode(w) != "" {
				t.Errorf("nodes %s, before %s; %q is tainted", got, before, disruptedNode(w))
			}
			for _, claim := range w.Claims() {
				if claim.Deleting.IsZero() && (claim.Annotations[disruption.AnnotationMark] != "" || claim.Annotations[disruption.AnnotationReplaces] != "") {
					t.Errorf("claim %s takes part still: %v", claim.Name, claim.Annotations)
				}
			}
			if looks := slices.Contains(pass(c.mode), "read snapshot"); looks == c.off {
				t.Errorf("it looks at the cluster: %t", looks)
			}
		})
	}
}
