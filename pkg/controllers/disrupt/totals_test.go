package disrupt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// leaseTotals are what stands on the lease.
type leaseTotals struct {
	timeseries.Totals
	changes int
}

func (l *leaseTotals) ChangeTotals(lease string, change func(timeseries.Totals)) {
	if l.changes++; lease == "joiner-capacity" {
		change(l.Totals)
	}
}

// text is the totals, without buckets and times.
func (l *leaseTotals) text() string {
	var lines []string
	for _, s := range l.List(time.Time{}) {
		if strings.HasSuffix(s.Name, "_bucket") || strings.HasSuffix(s.Name, "_sum") {
			continue
		}
		line := strings.TrimPrefix(s.Name, "karpenter_voluntary_disruption_")
		for _, label := range s.Labels {
			line += " " + label.Name + "=" + label.Value
		}
		lines = append(lines, fmt.Sprintf("%s: %g", line, s.Value))
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// A pass that empties a node is counted on the lease under which it runs; one that may change nothing is not.
func TestPassesAreCountedOnTheLease(t *testing.T) {
	f := controllertest.FreeToDisrupt(t, "WhenEmpty", 1)
	w := f.World
	got := &leaseTotals{Totals: timeseries.Totals{}}
	pass := func(may bool) {
		t.Helper()
		w.Advance(20 * time.Second)
		c := f.Disrupt(w.Ports(fake.Fault{}))
		c.Totals = got
		if !may {
			c.Permission = func(context.Context) (bool, error) { return false, nil }
		}
		if err := c.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	pass(true)
	w.ScaleApp("web", 0)
	pass(false)
	if got.changes != 1 {
		t.Errorf("%d passes are counted, want 1", got.changes)
	}
	pass(true)
	pass(true)
	want := `decision_evaluation_duration_seconds_count: 3
decisions_by_nodepool_total consolidation_type=empty decision=delete nodepool=general reason=empty: 1
decisions_total consolidation_type=empty decision=delete reason=empty: 1
eligible_nodes reason=drifted: 0
eligible_nodes reason=empty: 1
eligible_nodes reason=underutilized: 0`
	if d := cmp.Diff(want, got.text()); d != "" {
		t.Errorf("totals (-want +got):\n%s", d)
	}
}
