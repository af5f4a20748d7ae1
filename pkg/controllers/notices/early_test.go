package notices_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// launching is a world in which EC2 has started an instance whose claim does not say so yet.
func launching(t *testing.T) *controllertest.Functions {
	t.Helper()
	// The invocation dies when it would write the first instance down. Which call that is depends on the order of
	// launches side by side.
	for call := range 200 {
		f := controllertest.WaitingPods(t)
		_ = f.Provision(f.World.Ports(fake.Fault{Call: 1 + call%50, Fatal: true})).Run(context.Background(), f.Once())
		written := slices.ContainsFunc(f.World.Claims(), func(c cluster.Claim) bool { return c.ProviderID != "" })
		if len(f.World.Instances()) > 0 && !written {
			f.World.SkipTime(20 * time.Second) // its lease ends
			return f
		}
	}
	t.Fatal("no call comes between a launch and the claim that says so")
	return nil
}

// TestNoticeBeforeItsLaunchIsWrittenDown: a notice about such an instance is not lost. An urgent one is decided again
// in seconds.
func TestNoticeBeforeItsLaunchIsWrittenDown(t *testing.T) {
	for _, kind := range []interruption.Kind{interruption.Spot, interruption.Rebalance, interruption.Scheduled} {
		synctest.Test(t, func(t *testing.T) {
			f := launching(t)
			n := interruption.Notice{Kind: kind, Instance: controllertest.FirstInstance(f), Time: f.World.Now()}
			go func() {
				time.Sleep(3 * time.Second)
				if err := f.Provision(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil {
					t.Error(err)
				}
			}()
			handle := func() error {
				return f.Interruption(f.World.Ports(fake.Fault{})).HandleNotices(context.Background(), n)
			}
			err := handle()
			if _, early := errors.AsType[*notices.EarlyError](err); early != (kind != interruption.Spot) {
				t.Fatalf("%s: error %v", kind, err)
			}
			time.Sleep(time.Minute)
			synctest.Wait()
			if kind != interruption.Spot {
				if err := handle(); err != nil { // as Lambda does
					t.Fatalf("%s a minute later: %v", kind, err)
				}
			}
			switch c := controllertest.ClaimOf(f, n.Instance); kind {
			case interruption.Spot:
				if c.Deleting.IsZero() {
					t.Error("the claim is not marked for deletion")
				}
			case interruption.Scheduled:
				if c.Deleting.IsZero() { // without a date it is marked for deletion at once
					t.Error("the claim is not marked for deletion")
				}
			}
		})
	}
}
