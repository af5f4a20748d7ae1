package lifecycle_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// TestAScheduledChangeThatNobodyAnnouncedIsFound: AWS Health says nothing, the status of the instance does. Its
// replacement is in service before it goes, and looking at the status again and again changes nothing more.
func TestAScheduledChangeThatNobodyAnnouncedIsFound(t *testing.T) {
	f := controllertest.Aged(t)
	id := controllertest.FirstInstance(f)
	f.World.ScheduleChange(id, f.World.Now().Add(72*time.Hour))
	told := func() (n int) {
		for _, e := range f.World.Events("NodeClaim") {
			if controllertest.HasReason("InstanceUnhealthy")(e) {
				n++
			}
		}
		return n
	}
	woken := f.World.CountWakeups("provision")
	if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(context.Background(), f.Once()); err != nil || f.World.CountWakeups("provision") == woken {
		t.Fatalf("error %v, provision was woken %d times", err, f.World.CountWakeups("provision")-woken)
	}
	for range 15 {
		f.Rest(t, 1)
		old := controllertest.ClaimOf(f, id)
		if old.Name == "" {
			break
		}
		if interruption.LeaveOf(old).Cause != interruption.Scheduled {
			t.Fatalf("the claim is not marked: %v", old.Annotations)
		}
		if !old.Deleting.IsZero() && !slices.ContainsFunc(f.World.Claims(), func(c cluster.Claim) bool {
			return c.Created.After(old.Created.Add(time.Minute)) && c.Is("Initialized")
		}) {
			t.Fatal("the node was marked for deletion without a replacement in service")
		}
	}
	f.ComeToRest(t)
	if c := controllertest.ClaimOf(f, id); c.Name != "" || told() != 1 {
		t.Errorf("claim %q is left, and %d events told of it; want one", c.Name, told())
	}
}

// TestTheStatusIsAskedForOncePerInvocation: however often lifecycle looks at the cluster.
func TestTheStatusIsAskedForOncePerInvocation(t *testing.T) {
	f := controllertest.Aged(t)
	f.World.DeleteClaims()
	p := f.World.Ports(fake.Fault{})
	if err := f.Lifecycle(p).Run(context.Background(), f.World.Now().Add(10*time.Second)); err != nil {
		t.Fatal(err)
	}
	asked, looked := 0, 0
	for _, c := range p.Calls() {
		if c == "describe instance status" {
			asked++
		}
		if c == "list instances" {
			looked++
		}
	}
	if asked != 1 || looked < 5 {
		t.Errorf("%d calls of describe instance status in %d passes, want 1", asked, looked)
	}
}

// TestFoundScheduledChangesSurviveEveryFault has lifecycle die after any call, for a date that leaves time and one that
// does not.
func TestFoundScheduledChangesSurviveEveryFault(t *testing.T) {
	for name, ahead := range map[string]time.Duration{"far": 72 * time.Hour, "near": 30 * time.Minute, "past": -time.Minute} {
		t.Run(name, func(t *testing.T) {
			var id string
			controllertest.EachFault(t,
				func(t *testing.T) *controllertest.Functions {
					f := controllertest.Aged(t)
					id = controllertest.FirstInstance(f)
					f.World.ScheduleChange(id, f.World.Now().Add(ahead))
					return f
				},
				func(f *controllertest.Functions, p *fake.Ports) error {
					return f.Lifecycle(p).Run(context.Background(), f.Once())
				},
				func(t *testing.T, f *controllertest.Functions) {
					f.Rest(t, 6)
					f.ComeToRest(t)
					if c := controllertest.ClaimOf(f, id); c.Name != "" {
						t.Errorf("claim %s was not left; its annotations: %v", c.Name, c.Annotations)
					}
				})
		})
	}
}
