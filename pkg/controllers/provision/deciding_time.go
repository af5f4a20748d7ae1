package provision

import (
	"context"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning"
)

// Limits of the time that a decision takes.
const (
	// decidingPart is the part of what is left of an invocation after which a decision is given up: the next one, about
	// less, has as much time.
	decidingPart = 3
	// lessWhenLate is the factor by which the next decision takes on less work, and lessFor the time for which it does.
	lessWhenLate, lessFor = 8, 10 * time.Minute
	// namespacePart is the part of a pass's work that the pods of one namespace may take while pods of others wait:
	// about a second. With it and crowdedPart others wait 1.8 s at most for 1,000 hostile pods of each of 36 kinds, in
	// a function of 512 MiB; with 4 it is 2.4 s, with 16 1.1 s. Of 2,000 usual jobs no two of which are alike the first
	// pass is about 1,290 then, with 4 about all, with 16 about 640.
	namespacePart = 8
	// leastDemand is enough for a few pods of each of some namespaces, in milliseconds of one core.
	leastDemand = 16
)

// lateDecision remembers a decision that took too long: how much work the next ones take on, until when.
type lateDecision struct {
	milliseconds int
	until        time.Time
}

// demandMilliseconds returns how much of a core's time all pods of a pass may take before anything is searched for, a
// power of two; 0 where no limit is known. After a decision that took too long it is less.
func demandMilliseconds(ctx context.Context, c *Controller) int {
	late := c.Process.late
	isLate := late.milliseconds > 0 && c.Now().Before(late.until)
	end, limited := ctx.Deadline()
	switch {
	case (!limited || c.VCPUs == 0) && isLate:
		return late.milliseconds
	case !limited || c.VCPUs == 0:
		return 0
	}
	most, out := float64(end.Sub(c.Now()).Milliseconds())/(2*decidingPart)*c.VCPUs, leastDemand
	for float64(out*2) <= most {
		out *= 2
	}
	if isLate {
		return min(out, late.milliseconds)
	}
	return out
}

// decideAndLog makes the plan and logs it; false where that takes too long.
func (c *Controller) decideAndLog(ctx context.Context, s cluster.Snapshot, start time.Time) (provisioning.Decision,
	bool) {
	s.Aside = c.Process.aside
	s.Rules.PackingMilliseconds = c.packingMilliseconds(ctx, s.Pods)
	s.Rules.DemandMilliseconds = demandMilliseconds(ctx, c)
	if all := s.Rules.DemandMilliseconds; all > 0 {
		s.Rules.NamespaceMilliseconds = max(leastDemand, all/namespacePart)
	}
	decided, ok := decideInTime(ctx, c, s)
	if !ok {
		return decided, false
	}
	c.Process.aside = decided.Aside
	c.logPlan(decided.Plan)
	c.sum.NoteMissedHints(c.Hints, start, controllers.LaunchedFor(s, decided.Plan.Launches))
	if len(decided.Plan.Faults) > 0 { // what comes next may fail as well
		c.recordDecision(ctx, s, decided.Plan, nil)
		c.recordFaults(ctx, s, decided.Plan.Faults)
	}
	return decided, true
}

// decideInTime is the decision about the snapshot, or false where it takes too long. Then the next ones are about less:
// of the namespaces whose pods are most work, those pods are left out that are most of it.
func decideInTime(ctx context.Context, c *Controller, s cluster.Snapshot) (out provisioning.Decision, ok bool) {
	s.Follower = stopWhenLate(ctx, c.Now, s.Follower)
	defer func() {
		said := recover()
		if _, late := said.(cluster.OutOfTime); late {
			now := c.Now()
			work := max(leastDemand, s.Rules.DemandBudget()/lessWhenLate)
			c.Process.late = lateDecision{work, now.Add(lessFor)}
			c.Log.Warn("the decision takes too long: the next one leaves out the pods that are most work, of the "+
				"namespaces that are most", "milliseconds", work)
		} else if said != nil {
			panic(said)
		}
	}()
	return provisioning.Decide(s), true
}

// stopWhenLate ends decisions that go on when a part of the time is over that is left now. Another follower, where
// there is one, is told too.
func stopWhenLate(ctx context.Context, now func() time.Time, other cluster.StageFollower) cluster.StageFollower {
	end, limited := ctx.Deadline()
	if !limited {
		return other
	}
	began := now()
	return stageClock{now, began.Add(end.Sub(began) / decidingPart), other}
}

// stageClock ends decisions at a time.
type stageClock struct {
	now   func() time.Time
	end   time.Time
	other cluster.StageFollower
}

// FollowStage ends the decision when its time is over.
func (c stageClock) FollowStage(s cluster.Stage) {
	if c.other != nil {
		c.other.FollowStage(s)
	}
	if c.now().After(c.end) {
		panic(cluster.OutOfTime{})
	}
}
