package provision_test

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// leaseTotals are what stands on a lease.
type leaseTotals struct {
	lease string
	timeseries.Totals
}

func (l *leaseTotals) ChangeTotals(lease string, change func(timeseries.Totals)) {
	l.lease = lease
	change(l.Totals)
}

// Each decision about pods is measured on the lease under which it is made.
func TestDecisionsAreMeasuredOnTheLease(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 3000))
	got := &leaseTotals{Totals: timeseries.Totals{}}
	c := f.Provision(f.World.Ports(fake.Fault{}))
	c.Totals = got
	if err := c.Run(t.Context(), f.World.Now()); err != nil {
		t.Fatal(err)
	}
	measured := 0.0
	for _, s := range got.List(time.Time{}) {
		if s.Name == "karpenter_scheduler_scheduling_duration_seconds_count" && s.Labels[0].Value == "provisioner" {
			measured = s.Value
		}
	}
	if measured != 1 || got.lease != "joiner-capacity" {
		t.Errorf("%v decisions measured on lease %q, want 1 on joiner-capacity", measured, got.lease)
	}
}
