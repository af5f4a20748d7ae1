package provision

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/scheduling/binpack"
)

// Limits of one pass of provision.
const (
	parallelLaunches = 8 // or writes of one batch
	parallelBatches  = 3
	// a snapshot on which a node may be disrupted by choice; an older one waits for the next pass
	freshFor = 2 * time.Second

	// this often, whatever the watches tell: they do not tell when a budget allows more
	lookAtLeast = 2 * time.Second
)

// Controller finds pods without a node and launches nodes for them. It is the one place that launches.
type Controller struct {
	controllers.Deps

	Hints          controllers.PushHints // of push
	Read           controllers.Reader
	Claims         controllers.Claims
	Lease          controllers.Lease
	Fleet          Launcher
	Unavailable    controllers.UnavailableOfferings
	Brake          PurchaseBrake
	Prices         controllers.CatalogReader
	Levels         controllers.RemainingCapacity
	Lifecycle      controllers.Waker      // runs lifecycle once instances were launched
	Refresh        controllers.Waker      // runs refresh when a class is new or was changed
	Watch          controllers.WatchLease // tells others that nobody need wake provision; nil to tell nobody
	Buffers        controllers.Buffers
	Holds          Tolerator
	Rollouts       controllers.Rollouts // nil: NodeRollouts do not exist
	Stopped        controllers.StoppedCapacity
	Diary          controllers.DecisionLog // nil: no decision log
	Stamp          decisionlog.PassStamp
	Cluster        launch.Cluster
	UnavailableFor time.Duration
	ShareFrom      int           // equal launches from which on they share a request; 0 for never
	AlwaysWatch    bool          // stay although there is nothing to do
	BatchIdle      time.Duration // without a new pod, before pods are packed; 0 to pack at once
	BatchMax       time.Duration // that pods wait for others at most
	VCPUs          float64       // of the function; 0 where nobody knows

	Totals controllers.PassTotals // where decisions are counted for Prometheus; nil for nowhere

	Refusals func() int // requests that the API server refused as too many, of this process; nil: nobody counts

	Process *ProcessState // shared by the invocations of a process; nil for this one's own

	said    string          // the plan that was logged last
	known   map[string]bool // pods, by UID, that waited when it looked last
	deleted deletedClaims
	seen    controllers.StaleStatus
	sum     controllers.Measurements
	kept    controllers.DecisionRecorder

	mishaps launchFaults
	failed  controllers.ObjectBackoff // steps about one object, of this invocation
}

// Run passes until nothing is left to do or until the time given; it then watches for more. A step about one object
// that fails is tried again later, and all others go on; what did not succeed in the end is the error.
func (c *Controller) Run(ctx context.Context, until time.Time) error {
	defer c.sum.PutMetrics(c.Metrics)
	if c.Process == nil {
		c.Process = &ProcessState{}
	}
	w := controllers.Watcher{Lease: c.Watch, Name: controllers.WatchLeaseName("provision"), Holder: c.Holder,
		Log: c.Log, Permission: c.Permission}
	defer w.ReleaseLease(ctx)
	pass := c.LimitPass(c.Shield().GuardPass(func(pass context.Context) (bool, error) {
		return c.runPass(pass, func() { w.BeginWatch(ctx, until.Sub(c.Now())) })
	}))
	longest := time.Duration(0)
	for {
		began, under := c.Now(), controllers.BeginPass(ctx, c.Permission)
		busy, err := pass(under)
		if controllers.IsCutShort(err) {
			return c.failed.JoinErrors()
		}
		if err != nil || controllers.WasRefused(under) {
			return errors.Join(err, c.failed.JoinErrors())
		}
		now := c.Now()
		longest = max(longest, now.Sub(began))
		if !w.ContinueWatch(ctx, busy || c.AlwaysWatch || c.Hints.ExpectsHint(now), until.Sub(now), longest) {
			return c.failed.JoinErrors()
		}
		if err := controllers.WaitForChange(ctx, c.Read, until.Sub(now), lookAtLeast); err != nil {
			return errors.Join(err, c.failed.JoinErrors())
		}
	}
}

// runPass looks once. It reports whether something is on its way that is worth waiting for, and says when it has
// something to do. It takes the lease before it waits for further pods: what others did until then is proven meanwhile.
func (c *Controller) runPass(ctx context.Context, begin func()) (busy bool, err error) {
	looked := c.Now()
	pods, err := c.Read.PendingPods(ctx)
	if err != nil {
		return false, err
	}
	if len(pods) == 0 {
		if idle, err := isIdle(ctx, c); idle || err != nil {
			return false, err
		}
	}
	may, err := controllers.MayWrite(ctx)
	if err != nil {
		return false, err
	}
	run := c.Shield().GuardPass(func(ctx context.Context) (bool, error) {
		claims, err := c.Read.ListClaims(ctx)
		if err != nil {
			return false, err
		}
		if err := c.waitForBatch(ctx, pods, looked, claims); err != nil {
			return false, err
		}
		return c.runLocked(ctx)
	})
	if !may {
		return run(ctx)
	}
	begin()
	lease := controllers.CapacityLease{Lease: c.Lease, Holder: c.Holder}
	busy, held, err := lease.RunUnderLease(ctx, run)
	if err == nil && !held {
		c.Log.Info("capacity lease held by another invocation")
		return true, nil
	}
	return busy, err
}

// oldestSnapshot is the largest age of what a pass has read and decides about. Launches that are resumed may take
// longer; until then pods may have been made anew, with a volume in another zone.
const oldestSnapshot = 5 * time.Second

// runLocked is a pass by the holder of the lease: what an earlier invocation left unfinished first, then the pods. Pods
// that nothing can be done for are not worth staying for. A pass that may not write holds no lease; it logs what it
// would do.
func (c *Controller) runLocked(ctx context.Context) (busy bool, err error) {
	controllers.NoteStage(ctx, controllers.StageReading)
	start := c.Now()
	s, err := c.readSnapshot(ctx)
	if err != nil {
		return false, err
	}
	read := c.Now() // to read it again because that was slow would only make pods wait
	controllers.NoteStage(ctx, controllers.StageResuming)
	s = withPace(c, s)
	// A claim that cannot be launched now counts as capacity on its way, and stops nobody else.
	launched := c.resumeLaunches(ctx, &s)
	if c.Now().Sub(read) > oldestSnapshot {
		if s, err = c.readSnapshot(ctx); err != nil {
			return false, err
		}
		s.Pace = c.Process.pacing.Most
	}
	s = withPurchaseBrake(ctx, c, s)
	controllers.NoteStage(ctx, controllers.StageDeciding)
	began := c.Now()
	decided, ok := c.decideAndLog(ctx, s, start)
	if !ok {
		return true, nil // the next pass is about less
	}
	took := c.Now().Sub(began)
	may, err := controllers.MayWrite(ctx)
	if err != nil {
		return false, err
	}
	if !may {
		controllers.LogDryRun(c.Log, plannedActions(s, decided)...)
		c.finishPass(ctx, s, decided.Plan, start)
		c.recordDecision(ctx, s, decided.Plan, nil)
		return false, nil
	}
	controllers.NoteStage(ctx, controllers.StageApplying)
	c.countDecision(took)
	decided, seen, started, startErr := startStopped(ctx, c, &s, decided, start)
	c.failed.NoteOutcome(ctx, "stopped capacity", startErr, c.Now())
	changed, made := c.applyPlan(ctx, &s, decided)
	c.Process.launched = launched + len(made.launched)
	changed += started
	controllers.NoteStage(ctx, controllers.StageRecording)
	unplaced, help := unplacedWithHelp(c, s, decided, launched+changed > 0)
	c.finishPass(ctx, s, decided.Plan, start)
	c.recordDecision(ctx, seen, decided.Plan, help)
	if launched+changed > 0 && !controllers.WasRefused(ctx) {
		controllers.NoteStage(ctx, controllers.StageWaking)
		c.failed.NoteOutcome(ctx, "function lifecycle", c.Lifecycle.Wake(ctx), c.Now())
	}
	controllers.NoteStage(ctx, controllers.StageRecording)
	_ = c.Shield().Do("what is told", func() error { // logged
		c.events().recordLaunches(ctx, s, made)
		c.events().recordUnplaced(ctx, s, withHelp(unplaced, help))
		c.events().recordPools(ctx, s, decided.Plan)
		c.events().recordCeiling(ctx, s, decided.Plan.Held)
		c.writeBufferStatus(ctx, s, decided.Plan)
		return nil
	})
	fresh, wakeErr := c.seen.WakeRefresh(ctx, s, c.Refresh, c.Log)
	c.failed.NoteOutcome(ctx, "function refresh", wakeErr, c.Now())
	busy = fresh || started+len(decided.Plan.AllLaunches()) > 0 || placesReal(s, decided.Plan) ||
		interruption.AwaitsReplacement(s.Claims, c.Now())
	return busy, nil
}

func (c *Controller) readSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := controllers.Observer{Read: c.Read, Prices: c.Prices, Unavailable: c.Unavailable,
		Levels: c.Levels, Rollouts: c.Rollouts, Rules: c.Rules, Now: c.Now, Log: c.Log}.ReadSnapshot(ctx)
	if err != nil {
		return s, err
	}
	s, err = controllers.WithVolumes(ctx, c.Read, s, provisioning.MayEmpty)
	return c.Process.refused.withoutRefused(s), err
}

// applyPlan deletes, annotates and launches what was decided, and brings s up to date. It returns how many NodeClaims
// it launched or deleted, and what became of the launches. A step that fails does not stop the others.
func (c *Controller) applyPlan(ctx context.Context, s *cluster.Snapshot, decided provisioning.Decision) (changed int,
	made launchOutcome) {
	replaced, decision := decided.Replacements, decided.Plan
	deleted, removed := 0, 0
	step := func(about string, do func()) {
		c.TryStep(ctx, &c.failed, about, func() error { do(); return nil })
	}
	// and before launches, which take seconds in which pods come to the nodes that would go
	if c.Now().Sub(s.Now) < freshFor {
		step("nodes to be left", func() { deleted = c.deleteReplaced(ctx, *s, replaced, decision) })
	}
	step("pods of nodes on their way", func() { c.writeNominations(ctx, s, decision) })
	// before claims are made for pods that were to run there
	step("surplus nodes", func() { removed = c.deleteSurplus(ctx, *s, decision.Removals) })
	first := &pendingDrains{p: c, waiting: interruption.DrainsWaiting(*s, decision)}
	controllers.NoteStage(ctx, controllers.StageLaunching)
	made = c.createAndLaunch(ctx, *s, decision, first)
	controllers.NoteStage(ctx, controllers.StageApplying)
	first.releaseReady(ctx, made.launched)
	// logged
	_ = c.Shield().Do("pods of held nodes", func() error { c.tolerateNominations(ctx, *s, decision); return nil })
	return len(made.launched) + deleted + removed, made
}

// plannedActions says in words what applyPlan does, in its order.
func plannedActions(s cluster.Snapshot, decided provisioning.Decision) (actions []string) {
	for _, one := range decided.Plan.Starts() {
		actions = append(actions, one.String())
	}
	for _, a := range interruption.DeleteReplaced(s, decided.Replacements, decided.Plan) {
		actions = append(actions, a.String())
	}
	for _, n := range binpack.ListNominations(s, decided.Plan) {
		actions = append(actions, nominationAction(n))
	}
	for _, r := range decided.Plan.Removals {
		actions = append(actions, removalAction(r))
	}
	for _, l := range decided.Plan.AllLaunches() {
		actions = append(actions, l.String())
	}
	for _, c := range interruption.DrainsWaiting(s, decided.Plan).AcceptLaunches(decided.Plan.AllLaunches()) {
		actions = append(actions, drainAction(c))
	}
	for _, w := range nomination.TolerationsNeeded(s, decided.Plan) {
		actions = append(actions, tolerationAction(w))
	}
	return actions
}

func nominationAction(n binpack.Nomination) string {
	return fmt.Sprintf("nominate NodeClaim %s for %s", n.Claim.Name, plan.NamePods(n.Pods))
}

func removalAction(r plan.Removal) string { return "delete NodeClaim " + r.Claim + ": " + r.Why }

func drainAction(c cluster.Claim) string { return "release the drain of NodeClaim " + c.Name }

func tolerationAction(w nomination.TolerationNeeded) string {
	return "add toleration of " + w.Taint.Key + " to pod " + w.Pod.Key()
}

// finishPass logs, measures and keeps a pass: what it saw, and what has become of that.
func (c *Controller) finishPass(ctx context.Context, s cluster.Snapshot, decision plan.Plan, start time.Time) {
	c.Log.Log(ctx, levelOf(decision), "pass", "pods", countWaitingPods(s), "launches", len(decision.AllLaunches()), "placed",
		len(decision.Existing),
		"unplaced", len(decision.Unplaced), "usdPerHour", decision.TotalPrice(), "ms",
		c.Now().Sub(start).Milliseconds())
	c.sum.NoteHeld(decision.Held)
	c.sum.NoteUnschedulable(s, decision.Unplaced, provisioning.HibernatingPods(s, binpack.ResolveOfferings(s),
		decision.Unplaced), c.Now())
}

// ensureFinalizer makes sure that a claim carries our finalizer before anything is launched for it: one that a user
// made by hand does not.
func (c *Controller) ensureFinalizer(ctx context.Context, claim cluster.Claim) (cluster.Claim, error) {
	if claim.Finalizer && claim.Labels[awsv1.LabelEC2NodeClass] == claim.Class {
		return claim, nil
	}
	return c.Claims.AdoptClaim(ctx, claim)
}

// logPlan logs the plan unless the pass before had the same.
func (c *Controller) logPlan(decision plan.Plan) {
	if text := decision.String(); text != c.said {
		c.said = text
		for _, line := range decision.Lines() {
			c.Log.Info(line)
		}
	}
}

// recordDecision keeps the pass in the decision log, with what would help pods by their keys.
func (c *Controller) recordDecision(ctx context.Context, s cluster.Snapshot, decision plan.Plan,
	help map[string]string) {
	c.kept.To, c.kept.Stamp, c.kept.Warn = c.Diary, c.Stamp, c.Log.Warn
	said := c.said
	if len(help) > 0 {
		said += fmt.Sprint(help) // sorted
	}
	c.kept.RecordPass(ctx, said, c.mishaps.takeFaults(), func(st decisionlog.PassStamp) (decisionlog.Pass, error) {
		pass, err := replay.ProvisionPass(st, s, decision)
		pass.AddHelp(help)
		return pass, err
	})
}

func (c *Controller) newLauncher(s cluster.Snapshot) *claimLauncher {
	return &claimLauncher{p: c, s: s, orders: newOrderChooser(c, s)}
}

// levelOf keeps passes that changed nothing out of the log.
func levelOf(decision plan.Plan) slog.Level {
	if len(decision.AllLaunches())+len(decision.Removals) == 0 {
		return slog.LevelDebug
	}
	return slog.LevelInfo
}

func countWaitingPods(s cluster.Snapshot) (n int) {
	for i := range s.Pods {
		if p := &s.Pods[i]; p.Provisionable() && !p.Virtual {
			n++
		}
	}
	return n
}
