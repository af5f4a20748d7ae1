package control_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"joiner/pkg/control"
	"joiner/pkg/controltest"
	"joiner/pkg/interrupt"
)

// launching is a world in which EC2 has started an instance whose claim does not say so yet.
func launching(t *testing.T) *functions {
	t.Helper()
	var f *functions
	// The invocation dies when it would write the instance down.
	for call := 1; ; call++ {
		f = waiting(t)
		_ = f.provision(f.w.Ports(controltest.Fault{Call: call, Fatal: true})).Run(context.Background(), f.once())
		if len(f.w.Instances()) > 0 {
			break
		}
	}
	if c := f.w.Claims()[0]; c.ProviderID != "" {
		t.Fatalf("claim %s says its instance already", c.Name)
	}
	f.w.Skip(20 * time.Second) // its lease ends
	return f
}

// TestNoticeBeforeItsLaunchIsWrittenDown: a notice about such an instance is not lost. An urgent one is decided again in seconds.
func TestNoticeBeforeItsLaunchIsWrittenDown(t *testing.T) {
	for _, kind := range []interrupt.Kind{interrupt.Spot, interrupt.Rebalance, interrupt.Scheduled} {
		synctest.Test(t, func(t *testing.T) {
			f := launching(t)
			n := interrupt.Notice{Kind: kind, Instance: first(f), Time: f.w.Now()}
			go func() {
				time.Sleep(3 * time.Second)
				if err := f.provision(f.w.Ports(controltest.Fault{})).Run(context.Background(), f.once()); err != nil {
					t.Error(err)
				}
			}()
			handle := func() error {
				return f.interruption(f.w.Ports(controltest.Fault{})).Notices(context.Background(), n)
			}
			err := handle()
			if _, early := errors.AsType[*control.EarlyError](err); early != (kind != interrupt.Spot) {
				t.Fatalf("%s: error %v", kind, err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if kind != interrupt.Spot {
				if err := handle(); err != nil { // as Lambda does
					t.Fatalf("%s a minute later: %v", kind, err)
				}
			}
			switch c := claimOf(f, n.Instance); kind {
			case interrupt.Spot:
				if c.Deleting.IsZero() {
					t.Error("the claim is not condemned")
				}
			case interrupt.Scheduled:
				if c.Deleting.IsZero() { // without a date it is condemned at once
					t.Error("the claim is not condemned")
				}
			}
		})
	}
}
