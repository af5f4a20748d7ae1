package lifecycle_test

import (
	"context"
	"testing"
	"testing/synctest"

	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// A pass that is too slow ends before Lambda cuts it off: without an error and measured.
func TestAPassThatIsTooSlowEndsInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.HalfEmpty(t)
		p, lines := f.World.Ports(fake.Fault{}), &controllertest.MetricLines{}
		c := f.Lifecycle(p)
		c.Read, c.Metrics = controllertest.SlowReader{Reader: p}, lines
		controllertest.CheckCutShort(t, func(ctx context.Context) error { return c.Run(ctx, f.Once()) }, lines)
	})
}
