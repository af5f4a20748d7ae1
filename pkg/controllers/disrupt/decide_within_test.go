package disrupt_test

import (
	"context"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// runInvocation runs disrupt for a minute, with 15 s of deciding for each question that a pass may ask, and reports
// whether it came to its end.
func runInvocation(t *testing.T, f *controllertest.Functions, p *fake.Ports) (ended bool) {
	t.Helper()
	const timeout = time.Minute
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	start := time.Now()
	c := f.Disrupt(p)
	c.Deciding(func(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, cache *disruption.Cache) (disruption.Plan, disruption.Memory) {
		questions := 24 >> m.Overruns.Times
		time.Sleep(time.Duration(questions) * 15 * time.Second)
		if time.Since(start) > timeout {
			runtime.Goexit() // its process ends
		}
		return disruption.NextFrom(s, m, sells, cache)
	})
	end := make(chan bool, 1)
	go func() {
		defer close(end)
		if err := c.Run(ctx, f.Once()); err != nil {
			t.Error(err)
		}
		end <- true
	}()
	return <-end
}

// An invocation that its time-out cuts off in the middle of a decision loses what it learnt. The next ones ask half as
// much each, until one ends; and that one has decided something.
func TestAPassThatIsCutOffIsNotRepeatedForEver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.HalfEmpty(t)
		var p *fake.Ports
		times := 1
		for p = f.World.Ports(fake.Fault{}); !runInvocation(t, f, p); p = f.World.Ports(fake.Fault{}) {
			if times++; times > 8 {
				t.Fatal("eight invocations were cut off one after the other")
			}
			f.World.Advance(20 * time.Second) // its lease runs out
		}
		m, err := p.ReadMemory(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if times != 4 || m.Overruns.Times != 3 || len(m.Proposals) == 0 {
			t.Errorf("invocation %d ended, %d came late, %d proposals; want 4, 3 and some", times, m.Overruns.Times, len(m.Proposals))
		}
	})
}

// What was decided late is remembered before it is done, which takes its time too; and as long as it is not done, that
// it is late.
func TestWhatWasDecidedLateIsRememberedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.HalfEmpty(t)
		p := f.World.Ports(fake.Fault{})
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		c := f.Disrupt(p)
		c.Deciding(func(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, cache *disruption.Cache) (disruption.Plan, disruption.Memory) {
			time.Sleep(40 * time.Second)
			return disruption.NextFrom(s, m, sells, cache)
		})
		kept := &memories{DisruptionMemory: p}
		c.Notes = kept
		if err := c.Run(ctx, f.Once()); err != nil {
			t.Fatal(err)
		}
		want := []noted{{1, false}, {1, true}, {0, true}}
		if !slices.Equal(kept.all, want) {
			t.Errorf("remembered %v, want %v", kept.all, want)
		}
	})
}

// memories notes what is remembered.
type memories struct {
	disrupt.DisruptionMemory
	all []noted
}

// noted is one memory: passes that came late, and whether something is proposed.
type noted struct {
	late     int
	proposes bool
}

func (k *memories) WriteMemory(ctx context.Context, m disruption.Memory) error {
	k.all = append(k.all, noted{m.Overruns.Times, len(m.Proposals) > 0})
	return k.DisruptionMemory.WriteMemory(ctx, m)
}

// An invocation begins no pass that would not end in time if it took as long as the longest before.
func TestNoPassIsBegunThatMayNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.HalfEmpty(t)
		c := f.Disrupt(f.World.Ports(fake.Fault{}))
		c.Now = time.Now
		passes := 0
		c.Deciding(func(_ cluster.Snapshot, m disruption.Memory, _ binpack.Offerings, _ *disruption.Cache) (disruption.Plan, disruption.Memory) {
			passes++
			time.Sleep(16 * time.Second)
			return disruption.Plan{Proposed: []disruption.Command{{Reason: "Empty"}}}, m
		})
		start := time.Now()
		if err := c.Run(t.Context(), start.Add(50*time.Second)); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); passes != 2 || took != 37*time.Second {
			t.Errorf("%d passes in %s, want 2 in 37s", passes, took)
		}
	})
}

// A lease that provision has for moments is asked for again at once, also by an invocation that may not stay for long.
func TestALeaseInUseIsAskedForAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := controllertest.HalfEmpty(t)
		p := f.World.Ports(fake.Fault{})
		release, free, err := p.Acquire(t.Context(), controllers.CapacityLeaseName, "provision", time.Minute)
		if !free || err != nil {
			t.Fatal(free, err)
		}
		c := f.Disrupt(p)
		c.Now = time.Now
		passes := 0
		c.Deciding(func(_ cluster.Snapshot, m disruption.Memory, _ binpack.Offerings, _ *disruption.Cache) (disruption.Plan, disruption.Memory) {
			passes++
			return disruption.Plan{}, m
		})
		time.AfterFunc(1500*time.Millisecond, func() {
			if err := release(t.Context()); err != nil {
				t.Error(err)
			}
		})
		if err := c.Run(t.Context(), time.Now().Add(5*time.Second)); err != nil || passes != 1 {
			t.Errorf("%d passes, want 1: %v", passes, err)
		}
	})
}
