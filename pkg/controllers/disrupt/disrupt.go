package disrupt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/scheduling/binpack"
)

// betweenPasses is the time for which a disruption that is under way or proposed is left alone between two looks at it.
const betweenPasses = 5 * time.Second

// leaseRetry is the time after which disruption asks again for the lease that another invocation has. Provision gives
// it back within seconds. Both may begin at the same second of every minute: whoever asked once would never have it.
const leaseRetry = time.Second

// Controller begins, ends and takes back disruptions. It launches nothing: it stores the NodeClaims of replacements,
// and provision launches them. What is under way stands on the objects, so it may die after any call.
type Controller struct {
	controllers.Deps

	Read        controllers.Reader
	Placed      controllers.InstanceLister
	Claims      controllers.Claims
	Moves       NodeTainter
	Lease       controllers.Lease
	Unavailable controllers.UnavailableOfferings
	Prices      controllers.CatalogReader
	Levels      controllers.RemainingCapacity
	Notes       DisruptionMemory
	Rollouts    controllers.RolloutSteps // nil: NodeRollouts do not exist
	Provision   controllers.Waker        // launches replacements
	Lifecycle   controllers.Waker        // drains
	// with Rules.ReportDisruption: there is a pass only while something is under way, which takes it back
	Off bool
	// where passes are counted for Prometheus; nil for nowhere
	Totals controllers.PassTotals

	Cache *disruption.Cache          // kept from one pass to the next; nil: for this invocation
	Known *controllers.InstanceCache // the same of instances
	Diary controllers.DecisionLog    // nil: no decision log
	Stamp decisionlog.PassStamp

	// nil: disruption.NextFrom
	decide func(cluster.Snapshot, disruption.Memory, binpack.Offerings, *disruption.Cache) (disruption.Plan,
		disruption.Memory)
	said   string
	kept   controllers.DecisionRecorder
	failed controllers.ObjectBackoff // steps about one object or command, of this invocation
}

// Run passes until nothing is proposed or under way, or until the time given. A pass that takes as long as the longest
// before ends by then. A step about one object that fails is tried again later, and all others go on; what did not
// succeed in the end is the error.
func (c *Controller) Run(ctx context.Context, until time.Time) error {
	if c.Cache == nil {
		c.Cache = &disruption.Cache{}
	}
	if c.Known == nil {
		c.Known = &controllers.InstanceCache{}
	}
	longest := time.Duration(0)
	for {
		start := c.Now()
		under := controllers.BeginPass(ctx, c.Permission)
		held := false
		busy, err := c.LimitPass(func(pass context.Context) (busy bool, err error) {
			busy, held, err = c.lockAndRun(pass)
			return busy, err
		})(under)
		if controllers.IsCutShort(err) {
			return c.failed.JoinErrors()
		}
		if err != nil || controllers.WasRefused(under) {
			return errors.Join(err, c.failed.JoinErrors())
		}
		longest = max(longest, c.Now().Sub(start))
		wait := betweenPasses
		if !held {
			wait = leaseRetry
		}
		if held && !busy || !c.Now().Add(wait+longest).Before(until) {
			return c.failed.JoinErrors()
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), c.failed.JoinErrors())
		case <-time.After(wait):
		}
	}
}

// lockAndRun is a pass by the holder of the lease, if there is something to look at. It takes seconds in a large
// cluster, so it comes after what provision needs the lease for at once: replacements of what EC2 takes back.
func (c *Controller) lockAndRun(ctx context.Context) (busy, held bool, err error) {
	claims, err := c.Read.ListClaims(ctx)
	switch {
	case err != nil || len(claims) == 0 || c.Off && !slices.ContainsFunc(claims, hasCommand):
		return false, true, err
	case interruption.AwaitsReplacement(claims, c.Now()):
		c.Log.Info("skipped: pods wait for replacements of interrupted nodes")
		return true, true, nil
	}
	may, err := controllers.MayWrite(ctx)
	if err != nil {
		return false, true, err
	}
	if !may {
		busy, err = c.Shield().GuardPass(c.runPass)(ctx)
		return busy, true, err
	}
	lease := controllers.CapacityLease{Lease: c.Lease, Holder: c.Holder}
	return lease.RunUnderLease(ctx, c.Shield().GuardPass(c.runPass))
}

// hasCommand reports whether a disruption of the claim is under way.
func hasCommand(c cluster.Claim) bool { return c.Annotations[disruption.AnnotationMark] != "" }

// runPass decides once and has it done: first what ends, then what begins.
func (c *Controller) runPass(ctx context.Context) (busy bool, err error) {
	memory, err := c.Notes.ReadMemory(ctx)
	if err != nil {
		return false, err
	}
	s, err := c.readSnapshot(ctx)
	if err != nil {
		return false, err
	}
	s, err = c.advanceRollouts(ctx, s)
	c.failed.NoteOutcome(ctx, "NodeRollouts", err, c.Now())
	sells := c.Cache.Offerings(s)
	c.markDrift(ctx, &s, sells)
	if s, err = controllers.WithVolumes(ctx, c.Read, s, disruption.MayEmpty); err != nil {
		return false, err
	}
	start := c.Now()
	controllers.NoteStage(ctx, controllers.StageDeciding)
	decision, next, err := c.decideWithin(ctx, s, memory, sells)
	if err != nil {
		return false, err
	}
	all := nodesStaying(decision, s)
	next.Retained = updateRetention(all, memory.Retained, s.Now)
	c.logPlan(decision, all, next.Retained)
	took := c.Now().Sub(start)
	if c.Metrics != nil {
		c.Metrics.Put(decisionMetrics(decision, took)...)
	}
	c.kept.To, c.kept.Stamp, c.kept.Warn = c.Diary, c.Stamp, c.Log.Warn
	c.Shield().Report(decision.Faults...)
	controllers.NoteStage(ctx, controllers.StageRecording)
	said := strings.Join(append(rollout.Decided(s), c.said), "\n")
	c.kept.RecordPass(ctx, said, nil, func(st decisionlog.PassStamp) (decisionlog.Pass, error) {
		return replay.DisruptPass(st, s, memory, decision)
	})
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		c.logDryRun(decision)
		return false, err
	}
	controllers.NoteStage(ctx, controllers.StageApplying)
	c.countPass(s, decision, took)
	w := c.newApplier(s)
	w.applyTaints(ctx, decision)
	w.applyFinished(ctx, decision)
	err = w.applyBegun(ctx, decision, &next)
	controllers.NoteStage(ctx, controllers.StageRecording)
	_ = c.Shield().Do("what is told", func() error { // logged
		w.recordNotDisrupted(ctx, decision.NotDisrupted)
		w.recordBudgetExhausted(ctx, decision.BudgetsExhausted)
		w.recordConsidered(ctx, decision, memory.Proposals)
		w.recordStarting(ctx, decision)
		w.recordProtection(ctx)
		w.recordInvalidProtection(ctx)
		w.recordReasons(ctx, all, next.Retained)
		return nil
	})
	c.markStill(ctx, w.claims, w.ofClaimsLeft(decision.PodStability))
	busy = len(decision.Begin)+len(decision.Finish)+len(decision.RollBack)+len(decision.Proposed)+
		len(decision.Waiting) > 0
	return busy, errors.Join(err, c.writeMemory(ctx, next))
}

// logDryRun says what the pass would have done.
func (c *Controller) logDryRun(p disruption.Plan) {
	controllers.LogDryRun(c.Log, disruption.Plan{Finish: p.Finish, RollBack: p.RollBack,
		Begin: p.Begin, TaintFailed: p.TaintFailed, UntaintFailed: p.UntaintFailed,
		TaintPrevious: p.TaintPrevious, UntaintPrevious: p.UntaintPrevious}.Lines()...)
}

// advanceRollouts takes the steps of NodeRollouts. What cannot be stored is not allowed, and stops nothing else.
func (c *Controller) advanceRollouts(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, error) {
	if c.Rollouts == nil {
		return s, nil
	}
	controllers.NoteStage(ctx, controllers.StageRollouts)
	return c.Rollouts.AdvanceRollouts(ctx, s)
}

// writeMemory stores what the next pass is to know. A pass that may not write leaves no trace.
func (c *Controller) writeMemory(ctx context.Context, m disruption.Memory) error {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return err
	}
	return c.Notes.WriteMemory(ctx, m)
}

// listInstances tells what instances were put into, which hardly changes. Without an answer the verdicts of before
// stay.
func (c *Controller) listInstances(ctx context.Context) []cluster.Instance {
	placed, err := c.Known.ListInstances(ctx, c.Placed, controllers.InstanceQuery{Now: c.Now()})
	if err != nil {
		c.Log.Warn("drift of security groups and subnets is not looked for", "error", err)
		return nil
	}
	return placed
}

func (c *Controller) readSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	o := controllers.Observer{Read: c.Read, Prices: c.Prices, Unavailable: c.Unavailable,
		Levels: c.Levels, Rules: c.Rules, Now: c.Now, Log: c.Log}
	if c.Rollouts != nil {
		o.Rollouts = c.Rollouts
	}
	return o.ReadSnapshot(ctx)
}

// logPlan logs the plan unless the pass before had the same, and of nodes that stay what is news.
func (c *Controller) logPlan(p disruption.Plan, all []disruption.NotDisrupted, stays map[string]disruption.Retention) {
	lines := p.Lines()
	text := fmt.Sprint(lines)
	if text == c.said {
		return
	}
	c.said = text
	for _, line := range lines[:len(lines)-len(p.NotDisrupted)] {
		c.Log.Info(line)
	}
	logStays(c.Log, all, stays, c.Now())
	words := map[string]int{}
	for _, s := range all {
		words[string(s.Reason)]++
	}
	c.Log.Info("disruption", "begin", len(p.Begin), "finish", len(p.Finish), "rollback", len(p.RollBack), "proposed",
		len(p.Proposed),
		"reported", len(p.Reported), "waiting", len(p.Waiting), "notDisrupted", words)
}
