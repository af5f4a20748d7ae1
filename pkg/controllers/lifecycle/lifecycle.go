package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// Limits of one pass of lifecycle.
const (
	parallelSteps  = 10
	templateMaxAge = time.Hour

	// Evictions have a lane of their own, in which few at a time are under one budget: one that meets another write to
	// the status of its budget waits inside the API server for half a second, and would keep everything else waiting
	// with it. Two use the time better than one, because the controller of the budget writes too.
	parallelEvictions = 32
	turnsOfPodBudget  = 2

	// stepsTake bounds a pass: steps that have not begun by then are decided anew, for what they were decided on is
	// old, and what has become urgent meanwhile goes first.
	stepsTake = 3 * time.Second

	// impairedTrusted is the time for which it is taken for true that an instance is impaired.
	impairedTrusted = 10 * time.Second
)

// Controller takes the next step for every NodeClaim, node and instance.
type Controller struct {
	controllers.Deps

	Read      controllers.Reader
	Claims    controllers.Claims
	Nodes     Nodes
	Holds     NominationOpener
	Pods      Pods
	Live      LiveReader
	Instances Instances
	Health    Health      // nil where nobody asks
	Shifts    ZonalShifts // nil where nobody asks
	Pools     PoolStatus
	Failures  LaunchFailures
	Volumes   Volumes
	Provision controllers.Waker      // runs provision when pods are about to lose their node
	Refresh   controllers.Waker      // runs refresh when a class is new or was changed
	Watch     controllers.WatchLease // tells others that nobody need wake lifecycle; nil to tell nobody
	Hints     controllers.PushHints
	Refusals  *EvictionBackoff           // of evictions, shared by the invocations of a process; nil for none known
	Known     *controllers.InstanceCache // what the process knows of instances; nil for nothing
	Series    *remotewrite.Recorder      // for Prometheus; nil for nothing

	seen   controllers.StaleStatus
	sum    controllers.Measurements
	failed controllers.StepBackoff
	faults controllers.StepBackoff // of decisions, by what they are about

	examined  time.Time // in this invocation, last; zero for not yet
	impaired  []cluster.Impairment
	changes   []cluster.ScheduledChange
	statusErr error         // why EC2 could not be asked for the two above
	took      time.Duration // the last pass
	observed  bool          // a pass of this invocation, by Series
}

// Run passes until nothing is left to do or until the time given. A step that fails is tried again later, and the
// others go on; what did not succeed in the end is the error.
func (l *Controller) Run(ctx context.Context, until time.Time) error {
	defer l.sum.PutMetrics(l.Metrics)
	l.Series.Begin(ctx)
	l.observed = false
	defer l.Series.Wait()          // after the lease is given back: nobody else waits for what is sent
	swept := l.sweepTemplates(ctx) // that this fails must not keep a drain waiting
	l.failed, l.faults, l.took, l.examined = controllers.StepBackoff{}, controllers.StepBackoff{}, 0, time.Time{}
	if l.Refusals == nil {
		l.Refusals = &EvictionBackoff{}
	}
	if l.Known == nil {
		l.Known = &controllers.InstanceCache{}
	}
	w := controllers.Watcher{Lease: l.Watch, Name: controllers.WatchLeaseName("lifecycle"), Holder: l.Holder,
		Log: l.Log, Permission: l.Permission}
	defer w.ReleaseLease(ctx)
	pass := l.LimitPass(l.Shield().GuardPass(func(pass context.Context) (bool, error) {
		return l.runPass(pass, func() { w.BeginWatch(ctx, until.Sub(l.Now())) })
	}))
	end := func(err error) error { return errors.Join(err, l.failed.JoinErrors(), swept, l.statusErr) }
	longest := time.Duration(0)
	for {
		began, under := l.Now(), controllers.BeginPass(ctx, l.Permission)
		busy, err := pass(under)
		l.took = l.Now().Sub(began)
		longest = max(longest, l.took)
		if controllers.IsCutShort(err) {
			return end(nil)
		}
		if err != nil || controllers.WasRefused(under) {
			return end(err)
		}
		now := l.Now()
		if !w.ContinueWatch(ctx, busy || l.Hints.ExpectsHint(now), until.Sub(now), longest) {
			return end(nil)
		}
		// the watches do not tell when a pod has gone
		if err := controllers.WaitForChange(ctx, l.Read, until.Sub(now), time.Second); err != nil {
			return end(err)
		}
	}
}

// recordFaults tells of objects about which the decision fails, once in a while: it is taken every second.
func (l *Controller) recordFaults(faults []plan.Fault) {
	for _, f := range faults {
		if about := string(f.Kind) + " " + f.Name; !l.faults.IsBackingOff(about, l.Now()) {
			l.faults.AddFailure(about, errors.New(f.Why), l.Now())
			l.Shield().Report(f)
		}
	}
}

func (l *Controller) sweepTemplates(ctx context.Context) error {
	may, err := controllers.MayBegin(controllers.BeginPass(ctx, l.Permission), l.Log,
		"delete launch templates older than "+templateMaxAge.String())
	if err != nil || !may {
		return err
	}
	n, err := l.Instances.SweepTemplates(ctx, templateMaxAge)
	if err != nil {
		return fmt.Errorf("sweep launch templates: %w", err)
	}
	if n > 0 {
		l.Log.Info("deleted launch templates", "count", n)
	}
	return nil
}

// readInstanceStatus asks how EC2 says that the instances are, once in an invocation: it says so a minute late anyway.
// While one is impaired it asks again and again, because that an instance has failed for long enough must not be
// concluded from an old answer. That EC2 cannot be asked must not keep a drain waiting.
func (l *Controller) readInstanceStatus(ctx context.Context, instances []cluster.Instance) {
	now := l.Now()
	if l.Health == nil || !l.examined.IsZero() && (len(l.impaired) == 0 ||
		now.Before(l.examined.Add(impairedTrusted))) {
		return
	}
	running := lists.Where(instances, func(i cluster.Instance) bool { return i.State == "running" })
	l.examined = now
	l.impaired, l.changes, l.statusErr = l.Health.ListStatuses(ctx,
		lists.Of(running, func(i cluster.Instance) string { return i.ID }))
}

// runPass takes one step. It says when it has something to do.
func (l *Controller) runPass(ctx context.Context, begin func()) (busy bool, err error) {
	s, next, err := l.decideProven(ctx)
	if err != nil {
		return false, err
	}
	l.Series.ObservePass(s, !l.observed)
	l.observed = true
	l.sum.NoteMissedHints(l.Hints, s.Now, deletionTimes(s))
	l.recordFaults(next.Faults)
	if len(next.Actions) == 0 {
		return next.Busy, nil
	}
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		controllers.LogDryRun(l.Log, lists.Of(next.Actions, plan.Action.String)...)
		return false, err
	}
	begin()
	controllers.NoteStage(ctx, controllers.StageApplying)
	return l.applyActions(ctx, s, next.Actions) || next.Busy, nil
}

// decide decides what is to be done about the cluster.
func (l *Controller) decide(ctx context.Context, s cluster.Snapshot, instances []cluster.Instance) (cluster.Snapshot,
	lifecycle.Plan, error) {
	var next lifecycle.Plan
	s.Instances, s.Impaired, s.Changes, s.Now, s.Rules, s.PassTook = instances, l.impaired, l.changes, l.Now(), l.Rules,
		l.took
	if l.statusErr == nil {
		s.StatusAt = l.examined
	}
	if l.Shifts != nil {
		s.Shifts = l.Shifts.ListShifts(ctx)
	}
	l.noteWake(ctx, "function refresh", func() error {
		_, err := l.seen.WakeRefresh(ctx, s, l.Refresh, l.Log)
		return err
	})
	if err := l.readVolumes(ctx, &s); err != nil {
		return s, next, err
	}
	l.Refusals.markRetryTimes(s.Pods)
	controllers.NoteStage(ctx, controllers.StageDeciding)
	next = lifecycle.Next(s)
	next.Actions = l.withoutFailed(s, next.Actions)
	return s, next, nil
}

// withoutFailed leaves out the steps about objects whose last one failed a moment ago, so that nothing is read for them
// either, and what their pools are to remember of them, which was told when it failed.
func (l *Controller) withoutFailed(s cluster.Snapshot, actions []plan.Action) []plan.Action {
	if len(l.failed) == 0 {
		return actions
	}
	rests := func(a plan.Action) bool { return l.failed.IsBackingOff(actionSubject(a), l.Now()) }
	told := map[string]bool{} // UIDs
	for _, c := range s.Claims {
		told[c.UID] = rests(plan.Action{Claim: c.Name})
	}
	var out []plan.Action
	for _, a := range actions {
		if a.Do == plan.Registrations {
			a.Outcomes = slices.DeleteFunc(slices.Clone(a.Outcomes),
				func(o cluster.Registration) bool { return told[o.ClaimUID] })
		}
		if !rests(a) && (a.Do != plan.Registrations || len(a.Outcomes) > 0) {
			out = append(out, a)
		}
	}
	return out
}

// readVolumes reads what is attached to nodes whose next step depends on that, and whose volumes it is.
func (l *Controller) readVolumes(ctx context.Context, s *cluster.Snapshot) (err error) {
	nodes := lifecycle.DetachingNodes(*s)
	if len(nodes) == 0 {
		return nil
	}
	controllers.NoteStage(ctx, controllers.StageVolumes)
	if s.Attachments, err = l.Volumes.ListAttachments(ctx, nodes); err != nil || len(s.Attachments) == 0 {
		return err
	}
	*s, err = l.Read.WithVolumes(ctx, *s)
	return err
}

// deletionTimes returns the times when claims or their nodes were deleted.
func deletionTimes(s cluster.Snapshot) (deleted []time.Time) {
	for _, node := range s.StateNodes() {
		switch {
		case node.Claim == nil: // not ours
		case node.Node != nil && !node.Node.Deleting.IsZero():
			deleted = append(deleted, node.Node.Deleting)
		case !node.Claim.Deleting.IsZero():
			deleted = append(deleted, node.Claim.Deleting)
		}
	}
	return deleted
}

// applyActions does the actions: those on one object in their order, those on different objects side by side. An object
// that changed meanwhile is left to the next pass. It reports whether anything but telling was tried, so that looking
// again is worth it.
func (l *Controller) applyActions(ctx context.Context, s cluster.Snapshot, actions []plan.Action) (changed bool) {
	groups, keys := map[string][]plan.Action{}, []string{}
	deleted := false
	for _, a := range actions {
		k := actionSubject(a)
		if _, ok := groups[k]; !ok {
			keys = append(keys, k)
		}
		groups[k] = append(groups[k], a)
		changed = changed || a.Do != plan.Tell
		deleted = deleted || a.Do == plan.DeleteClaim || a.Do == plan.TaintForTermination || a.Do == plan.TaintNode ||
			a.Do == plan.LeaveNode
	}
	// What pools remember of their claims comes first: the claims' own steps are what tells it.
	slices.SortStableFunc(keys, func(a, b string) int { return cmp.Compare(laneRank(a), laneRank(b)) })
	pools := slices.IndexFunc(keys, func(k string) bool { return laneRank(k) > 0 })
	if pools < 0 {
		pools = len(keys)
	}
	objects := newIndex(s)
	l.sideBySide(ctx, objects, groups, workLane{rows: singleRows(keys[:pools]), most: parallelSteps})
	l.sideBySide(ctx, objects, groups, splitIntoLanes(objects, groups, keys[pools:])...)
	if deleted && !controllers.WasRefused(ctx) {
		controllers.NoteStage(ctx, controllers.StageWaking)
		l.noteWake(ctx, "function provision", func() error { return l.Provision.Wake(ctx) })
	}
	return changed
}

// noteWake wakes a function. That it cannot be woken is an error of the invocation, and keeps nothing waiting.
func (l *Controller) noteWake(ctx context.Context, function string, wake func() error) {
	if err := wake(); err == nil {
		delete(l.failed, function)
	} else if ctx.Err() == nil {
		l.failed.AddFailure(function, err, l.Now())
	}
}

// sideBySide does the actions on each of the objects, lane beside lane.
func (l *Controller) sideBySide(ctx context.Context, objects *objectIndex, groups map[string][]plan.Action,
	lanes ...workLane) {
	began := l.Now()
	type outcome struct {
		begun bool
		err   error
	}
	outcomes := map[string]*outcome{}
	for k := range groups {
		outcomes[k] = &outcome{}
	}
	var all errgroup.Group
	var told podEvents
	for _, one := range lanes {
		all.Go(func() error {
			var g errgroup.Group
			g.SetLimit(one.most)
			for _, row := range one.rows {
				g.Go(func() error {
					for _, k := range row {
						// the next pass or invocation goes on
						if controllers.TooLateToBegin(ctx) || !one.all && l.Now().Sub(began) >= stepsTake {
							return nil
						}
						err := l.Shield().Do(k, func() error {
							return l.inTurn(ctx,
								&actionWorker{l: l, told: &told, objectIndex: objects}, groups[k])
						})
						*outcomes[k] = outcome{true, err}
					}
					return nil
				})
			}
			return g.Wait()
		})
	}
	_ = all.Wait() // every error is in outcomes
	told.record(ctx, l, objects)
	for _, k := range slices.Sorted(maps.Keys(outcomes)) {
		o := outcomes[k]
		if o.err != nil && ctx.Err() != nil {
			continue // it was cut short, and did not fail
		}
		if o.err != nil {
			l.failed.AddFailure(k, o.err, l.Now())
		} else if o.begun {
			delete(l.failed, k)
		}
	}
}

// inTurn does the actions on one object, until one fails.
func (l *Controller) inTurn(ctx context.Context, w *actionWorker, actions []plan.Action) error {
	for _, a := range actions {
		may, err := controllers.MayBegin(ctx, l.Log, a.String())
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		if !may {
			continue
		}
		err = w.applyAction(ctx, a)
		if controllers.IsConflict(err) {
			l.Log.Info("conflict, retrying in next pass", "action", a.String(), "because", err.Error())
			return nil
		}
		if err != nil {
			return fmt.Errorf("%s: %w", a, err)
		}
		l.sum.NoteAction(a)
		if a.Do == plan.DeleteClaim {
			l.Series.NoteDeleted(a.Claim, a.Reason)
		}
	}
	return nil
}
