package provision_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// A pass that is too slow ends before Lambda cuts it off: without an error, with its leases given back, and measured.
func TestAPassThatIsTooSlowEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.WaitingPods(t)
		p, lines := f.World.Ports(fake.Fault{}), &controllertest.MetricLines{}
		c := f.Provision(p)
		c.Read, c.Metrics = controllertest.SlowReader{Reader: p}, lines
		controllertest.CheckCutShort(t, func(ctx context.Context) error { return c.Run(ctx, f.Once()) }, lines)
		if _, free, err := p.Acquire(t.Context(), "joiner-capacity", "another", time.Minute); !free || err != nil {
			t.Errorf("its lease is free: %t, %v", free, err)
		}
	})
}
