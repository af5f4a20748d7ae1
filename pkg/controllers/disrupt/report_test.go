package disrupt_test

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// In report mode, of the stack or of one pool, everything is decided and told in the log, and nothing is done: no
// NodeClaim is made, deleted or marked, no node tainted, nobody woken. What stands on claims as conditions (Drifted,
// Consolidatable) is no deed. The same world without the mode is changed at once.
func TestReportModeHasNoSideEffects(t *testing.T) {
	for _, c := range []struct {
		name    string
		mode    func(*disrupt.Controller)
		pool    func(*cluster.Pool)
		reports bool
	}{
		{"stack", func(controller *disrupt.Controller) { controller.Rules.ReportDisruption = true }, func(*cluster.Pool) {}, true},
		{"pool", func(*disrupt.Controller) {}, func(p *cluster.Pool) { p.Disruption.ReportOnly = true }, true},
		{"neither", func(*disrupt.Controller) {}, func(*cluster.Pool) {}, false},
	} {
		for _, why := range []string{"Underutilized", "Empty", "Drifted"} {
			t.Run(c.name+" "+why, func(t *testing.T) {
				f := controllertest.HalfEmpty(t)
				f.World.ChangePool(c.pool)
				switch why {
				case "Empty":
					f.World.ScaleApp("web", 0)
				case "Drifted":
					f.World.ChangePool(func(p *cluster.Pool) { p.Disruption.Never = true })
					f.World.ChangePool(controllertest.CapacityType("on-demand")) // the nodes are spot
				}
				f.World.Advance(time.Second)
				before, price := f.World.Nodes(), f.World.FleetPrice()
				var said bytes.Buffer
				var done []string
				for range 5 {
					p := f.World.Ports(fake.Fault{})
					controller := f.Disrupt(p)
					controller.Log = slog.New(slog.NewTextHandler(&said, nil))
					c.mode(controller)
					if err := controller.Run(context.Background(), f.Once()); err != nil {
						t.Fatal(err)
					}
					done = append(done, slices.DeleteFunc(p.Calls(), func(call string) bool {
						return !slices.ContainsFunc([]string{"taint", "untaint", "delete", "create", "annotate", "wake"}, func(v string) bool { return strings.HasPrefix(call, v) })
					})...)
					f.World.Advance(20 * time.Second)
				}
				if !c.reports {
					if len(done) == 0 {
						t.Error("without the mode nothing is done either")
					}
					return
				}
				if len(done) > 0 || math.Abs(f.World.FleetPrice()-price) > 1e-9 {
					t.Errorf("it does %v, and the price goes from %f to %f", done, price, f.World.FleetPrice())
				}
				if diff := cmp.Diff(before, f.World.Nodes()); diff != "" {
					t.Errorf("nodes (-before +after):\n%s", diff)
				}
				told := strings.Contains(said.String(), `msg="report `+why+":") ||
					// whether a node is empty depends on the order of launches
					why == "Underutilized" && strings.Contains(said.String(), `msg="report Empty:`)
				if !told || strings.Contains(said.String(), `msg="propose`) {
					t.Errorf("the decision is not told as a report: %s", said.String())
				}
			})
		}
	}
}
