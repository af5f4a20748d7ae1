package disrupt_test

import (
	"errors"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

var errDenied = errors.New(`admission webhook "policy" denied the request`)

// A NodeClaim whose status may not be written keeps no other one from being marked as drifted and replaced, and is not
// chosen again and again in their place.
func TestARefusedClaimKeepsNoOtherFromDisruption(t *testing.T) {
	for _, call := range []string{"write status of claim", "annotate claim"} {
		w := controllertest.NewWorld()
		w.ChangePool(func(p *cluster.Pool) {
			p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
		})
		w.RunApp("web", 3, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
		f := &controllertest.Functions{World: w}
		f.Rest(t, 4)
		old := map[string]bool{}
		for _, c := range w.Claims() {
			old[c.Name] = true
		}
		refused := w.Claims()[0].Name
		w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
		for range 24 {
			p := w.Ports(fake.Fault{})
			p.Deny = func(c, object string) error {
				if c == call && object == refused {
					return errDenied
				}
				return nil
			}
			if err := f.Disrupt(p).Run(t.Context(), w.Now().Add(5*time.Second)); err != nil && !errors.Is(err, errDenied) {
				t.Fatal(err)
			}
			f.Rest(t, 1)
		}
		for _, c := range w.Claims() {
			if old[c.Name] && c.Name != refused {
				t.Errorf("%s of %s is refused, and %s is of the old template still: drifted %t", call, refused, c.Name, c.Is(v1.ConditionDrifted))
			}
		}
	}
}

// A replacement that the API server refuses as invalid is no error of the pass: the node stays as it was, and the same
// replacement is not tried in each pass.
func TestAReplacementThatTheAPIServerRefuses(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	tried, before := 0, w.Claims()[0].Name
	w.RefuseClaim = func(plan.Launch) string { tried++; return "team" }
	const passes = 12
	for range passes {
		if err := f.Disrupt(w.Ports(fake.Fault{})).Run(t.Context(), w.Now().Add(5*time.Second)); err != nil {
			t.Fatalf("after %d attempts: %v", tried, err)
		}
		f.Rest(t, 1)
	}
	if c := w.Claims(); tried == 0 || tried > passes/2 || len(c) != 1 || c[0].Name != before || c[0].Annotations["joiner.sh/disruption"] != "" {
		t.Errorf("%d attempts, claims %+v, want that of before", tried, c)
	}
}

// At the ceiling of the cluster nothing is begun that needs a node more; the node is replaced once there is room.
func TestNothingIsReplacedAtTheCeiling(t *testing.T) {
	w := controllertest.NewWorld()
	w.ChangePool(func(p *cluster.Pool) {
		p.Hash, p.Disruption = "1", cluster.Disruption{Policy: "WhenEmpty", Budgets: []cluster.NodeBudget{{Every: true, Nodes: "1"}}}
	})
	w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	w.ChangePool(func(p *cluster.Pool) { p.Hash = "2" })
	before := w.Claims()[0].Name
	disrupt := func(passes int) {
		for range passes {
			if err := f.Disrupt(w.Ports(fake.Fault{})).Run(t.Context(), w.Now().Add(5*time.Second)); err != nil {
				t.Fatal(err)
			}
			f.Rest(t, 1)
		}
	}
	const oneNode = 50_000 // millionths of a USD, of which a second node costs more
	for _, c := range []cluster.Ceiling{{Nodes: 1}, {MillionthsUSD: oneNode}} {
		f.Ceiling = c
		disrupt(6)
		if now := w.Claims(); len(now) != 1 || now[0].Name != before || now[0].Annotations["joiner.sh/disruption"] != "" {
			t.Errorf("below %+v there are %d NodeClaims, the first %s is marked %q", c, len(now), now[0].Name, now[0].Annotations["joiner.sh/disruption"])
		}
	}
	f.Ceiling = cluster.Ceiling{Nodes: 2}
	w.Advance(61 * time.Minute) // after which what came to nothing is tried again
	disrupt(24)
	if now := w.Claims(); len(now) != 1 || now[0].Name == before {
		t.Errorf("with room for two there are %d NodeClaims, the first %s", len(now), now[0].Name)
	}
}
