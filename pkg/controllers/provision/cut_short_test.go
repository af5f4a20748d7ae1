package provision_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/testing/controllertest"
	"joiner/pkg/testing/fake"
)

// slowReader reads a cluster that is too large for an invocation.
type slowReader struct{ controllers.Reader }

// ReadSnapshot takes longer than there is.
func (slowReader) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	<-ctx.Done()
	return cluster.Snapshot{}, ctx.Err()
}

// A pass that is too slow ends before Lambda cuts it off: without an error, with its leases given back, and measured.
func TestAPassThatIsTooSlowEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.WaitingPods(t)
		p, lines := f.World.Ports(fake.Fault{}), &controllertest.MetricLines{}
		c := f.Provision(p)
		c.Read, c.Metrics = slowReader{p}, lines
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Run(ctx, f.Once()); err != nil || ctx.Err() != nil {
			t.Errorf("it ended with %v, its time with %v", err, ctx.Err())
		}
		if !slices.ContainsFunc(lines.All, func(l string) bool {
			return strings.Contains(l, `"joiner_passes_cut_short_total":1`)
		}) {
			t.Errorf("measured %q", lines.All)
		}
		if _, free, err := p.Acquire(t.Context(), "joiner-capacity", "another", time.Minute); !free || err != nil {
			t.Errorf("its lease is free: %t, %v", free, err)
		}
	})
}
