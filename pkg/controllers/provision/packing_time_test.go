package provision

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers"
)

// A few pods wait for a cheaper plan for little more than a second, whatever part of a core the function has; many wait
// longer, and all less where the invocation ends soon.
func TestPackingTakesAPartOfACore(t *testing.T) {
	for _, c := range []struct {
		vcpus float64
		left  time.Duration
		pods  int
		want  int
	}{
		{0.289, time.Minute, 1, 256}, {0.579, time.Minute, 1, 512}, {1, time.Minute, 1, 1024},
		{0.289, time.Minute, 500, 1024}, {0.289, time.Minute, 2000, 2048}, {1, time.Minute, 50000, 8192},
		{0.289, 3 * time.Second, 1, 128}, {0, time.Minute, 1, 0}, {1, 0, 1, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if c.left > 0 {
				limited, cancel := context.WithTimeout(ctx, c.left)
				defer cancel()
				ctx = limited
			}
			p := &Controller{Deps: controllers.Deps{Now: time.Now}, VCPUs: c.vcpus}
			if got := p.packingMilliseconds(ctx, c.pods); got != c.want {
				t.Errorf("%v vCPU, %v left, %d pods: %d ms of a core, want %d", c.vcpus, c.left, c.pods, got, c.want)
			}
		})
	}
}
