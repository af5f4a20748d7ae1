package notices

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"joiner.sh/events"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/interruption"
)

const (
	parallelNotices = 8
	mostInstances   = 5000 // of an event: EventBridge's 256 KB hold some 4,000
	mostToldAlone   = 100  // of an event's instances that are not ours
	// against others who change the same claim, and as many until a launch is written down
	noticeTries  = 4
	launchWrites = 2 * time.Second // a launch that is under way is written down within that, as a rule
)

// Controller turns notices about instances into what they mean for the cluster. Handling a notice twice, late or out
// of order is harmless. Ports that the kinds of a function do not need may be nil.
type Controller struct {
	controllers.Deps

	Read        ClaimReader
	Node        NodeReader
	Claims      controllers.Claims
	Nodes       controllers.Nodes
	Unavailable controllers.UnavailableOfferings
	Pods        NodePods          // for state changes
	Pools       PoolReader        // for recommendations
	Quota       RateQuota         // for recommendations
	Provision   controllers.Waker // launches capacity for the pods
	Lifecycle   controllers.Waker // brings into service, drains
	Foreign     *ForeignInstances // what earlier notices of this process were about, nil for nothing

	Place          Location
	UnavailableFor time.Duration
	Rebalance      interruption.RebalancePolicy // for pools that do not say
	QuarantineFor  time.Duration                // an offering that was left on a recommendation
}

// Handle handles one event of the kind. One that is malformed, of another kind, or not about us is logged and not tried
// again.
func (c *Controller) Handle(ctx context.Context, kind events.Kind, event []byte) error {
	notices, why, err := c.Place.decodeNotices(kind, event)
	if err != nil {
		c.Log.Error("ignored event", "kind", string(kind), "error", err)
		return nil
	}
	if why != "" {
		c.Log.Info("dropped event", "kind", string(kind), "why", why)
		return nil
	}
	if n := len(notices); n > mostInstances {
		c.Log.Error("left out instances of an event that names more than any of AWS", "kind", string(kind), "named", n,
			"handled", mostInstances)
		notices = notices[:mostInstances]
	}
	known := c.Foreign.withoutForeign(notices, c.Now())
	if dropped := len(notices) - len(known); dropped > 0 {
		c.Log.Info("dropped notices about instances that are not ours", "kind", string(kind), "count", dropped)
	}
	return c.HandleNotices(ctx, known...)
}

// HandleNotices handles notices side by side. One whose claim was changed meanwhile is decided anew, a few times. So is
// an urgent one whose instance may be one that is being launched; less urgent ones are left to the retries of the
// invocation.
func (c *Controller) HandleNotices(ctx context.Context, notices ...interruption.Notice) error {
	return errors.Join(c.handleAll(ctx, notices, len(notices) > mostToldAlone)...)
}

// handleAll is HandleNotices with an error for each notice, nil for one that is done. Where they are many those about
// instances of others are counted and not told one by one.
func (c *Controller) handleAll(ctx context.Context, all []interruption.Notice, many bool) []error {
	ctx = controllers.BeginPass(ctx, c.Permission)
	errs, left, foreign := make([]error, len(all)), c.unwatched(ctx, all), 0
	for tries, waits := 1, 1; len(left) > 0; {
		foreign += c.handleRound(ctx, all, left, errs, many)
		again, early := c.worthRetrying(all, left, errs, tries, waits)
		left = again
		if !early {
			tries++
			continue
		}
		waits++
		if err := controllers.WaitFor(ctx, launchWrites); err != nil {
			break // each has its error
		}
	}
	if many && foreign > 0 {
		c.Log.Info("notices about instances that are not ours", "count", foreign)
	}
	return errs
}

// handleRound handles those of the notices that are left, writes what became of each into errs, and returns how many
// were about instances of others.
func (c *Controller) handleRound(ctx context.Context, all []interruption.Notice, left []int, errs []error,
	many bool) (foreign int) {
	notices := lists.Of(left, func(at int) interruption.Notice { return all[at] })
	instances := lists.Of(notices, func(n interruption.Notice) string { return n.Instance })
	claims, err := c.Read.ClaimsOf(ctx, instances, c.sufficientReplacement(notices))
	if err != nil {
		for _, at := range left {
			errs[at] = err
		}
		return 0
	}
	var others atomic.Int64
	controllers.ForEach(parallelNotices, left, func(_, at int) {
		if many && controllers.TooLateToBegin(ctx) {
			errs[at] = lateError{}
			return
		}
		errs[at] = c.Shield().Do("the notice about instance "+all[at].Instance, func() error {
			ours, err := c.handleOne(ctx, all[at], claims, many)
			if !ours && err == nil {
				others.Add(1)
			}
			return err
		})
	})
	return int(others.Load())
}

// worthRetrying returns which of the notices are decided anew at once, and whether that waits for a launch.
func (c *Controller) worthRetrying(all []interruption.Notice, handled []int, errs []error, tries,
	waits int) (again []int, early bool) {
	for _, at := range handled {
		_, tooEarly := errors.AsType[*EarlyError](errs[at])
		if controllers.IsConflict(errs[at]) && tries < noticeTries ||
			tooEarly && all[at].Urgent() && waits < noticeTries {
			c.Log.Info("retrying notice", "instance", all[at].Instance, "because", errs[at].Error())
			again, early = append(again, at), early || tooEarly
		}
	}
	return again, early
}

// unwatched returns which notices something can come of: all that comes of an instance that runs is a wake-up of
// lifecycle or provision, and nothing where both watch. Where hundreds of instances start at once nobody need look for
// their claims.
func (c *Controller) unwatched(ctx context.Context, all []interruption.Notice) (left []int) {
	running := slices.ContainsFunc(all, func(n interruption.Notice) bool { return n.Kind == interruption.Running })
	watched := running && c.bothWatch(ctx)
	skipped := 0
	for at, n := range all {
		if watched && n.Kind == interruption.Running {
			skipped++
			continue
		}
		left = append(left, at)
	}
	if skipped > 0 {
		c.Log.Info("skipped: a running invocation will handle them", "kind", string(interruption.Running), "count",
			skipped)
	}
	return left
}

func (c *Controller) bothWatch(ctx context.Context) bool {
	for _, w := range []controllers.Waker{c.Lifecycle, c.Provision} {
		if w, can := w.(WatchAwareWaker); !can || !w.IsWatched(ctx) {
			return false
		}
	}
	return true
}

// sufficientReplacement returns what reports whether a claim makes another one needless, nil if no claim can.
func (c *Controller) sufficientReplacement(notices []interruption.Notice) func(cluster.Claim) bool {
	if len(notices) != 1 {
		return nil
	}
	return func(claim cluster.Claim) bool { return notices[0].IsSufficient(claim, c.Now()) }
}

// handleOne decides about a notice and has it done. It reports whether the instance is ours, and does not log of others
// where notices are many.
func (c *Controller) handleOne(ctx context.Context, n interruption.Notice, claims []cluster.Claim,
	many bool) (ours bool, err error) {
	o, err := c.decideOn(ctx, n, claims)
	if err != nil {
		return false, err
	}
	if o.Found || !many {
		c.logNotice(n, o)
	}
	switch {
	case o.Found:
		if err := c.applyDecision(ctx, n, o); err != nil {
			return true, err
		}
		c.measureNotice(n, o)
		return true, nil
	case o.Later:
		return false, &EarlyError{n}
	case o.Final:
		c.Foreign.rememberInstance(n.Instance, c.Now())
	case o.Provide:
		if may, err := controllers.MayBegin(ctx, c.Log, "wake provision"); err != nil || !may {
			return false, err
		}
		return false, c.Provision.Wake(ctx)
	}
	return false, nil
}

func (c *Controller) decideOn(ctx context.Context, n interruption.Notice,
	claims []cluster.Claim) (interruption.Response, error) {
	switch n.Kind {
	case interruption.Spot, interruption.Reservation:
		return interruption.Interrupted(n, claims, c.Now()), nil
	case interruption.Rebalance:
		return c.decideRebalance(ctx, n, claims)
	case interruption.Scheduled:
		return interruption.ScheduledChange(n, claims, c.Now()), nil
	}
	return interruption.StateChanged(n, claims, c.Now()), nil
}

// logNotice logs the notice. It is the one place that every notice of ours and of others passes once it was decided.
func (c *Controller) logNotice(n interruption.Notice, o interruption.Response) {
	if !o.Found {
		c.Log.Info("notice about an instance that is not ours", "kind", string(n.Kind), "instance", n.Instance,
			"outcome", o.Why)
		return
	}
	c.Log.Info("notice", "kind", string(n.Kind), "instance", n.Instance, "claim", o.Claim.Name,
		"deleteClaim", o.DeleteClaim,
		"outcome", o.Why, "age", c.Now().Sub(n.Time).Round(time.Millisecond).String())
}

// applyDecision has an outcome done. What later steps and other functions rely on comes first: the mark, so that
// whoever replaces the node does not buy the same offering again; what is written onto the claim, for it must be there
// when the claim is marked for deletion; the deletion, which makes provision look for room. Provision is woken before
// anybody is asked to drain, and a drain begins when provision has had the replacement launched. Where EC2 takes the
// instance back within minutes all of it comes after the taint: whoever else is slow, no pod is to come to a node that
// ends in any case. Without permission to write it only logs all that.
func (c *Controller) applyDecision(ctx context.Context, n interruption.Notice, o interruption.Response) error {
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		controllers.LogDryRun(c.Log, outcomeActions(n, o)...)
		return err
	}
	var node cluster.Node
	var errs []error
	leave := func() {
		var err error
		// a recommendation deletes nothing
		if node, err = c.readNode(ctx, o); err == nil && n.Kind != interruption.Rebalance {
			err = c.clearNode(ctx, o, node)
		}
		errs = append(errs, err)
	}
	if n.Urgent() {
		leave()
	}
	if err := c.deleteInterruptedClaim(ctx, n, o); err != nil {
		return errors.Join(append(errs, err)...)
	}
	var sure pendingConfirmations
	if o.Provide {
		errs = append(errs, sure.wakeFunctions(ctx, c.Provision, n))
	}
	if !n.Urgent() {
		leave()
	}
	if o.Drain {
		errs = append(errs, sure.wakeFunctions(ctx, c.Lifecycle, n))
	}
	var settled errgroup.Group
	// which waits, as a rule for longer than telling takes
	settled.Go(func() error { return sure.awaitConfirmations(ctx) })
	c.recordNotice(ctx, o, node)
	return errors.Join(append(errs, settled.Wait())...)
}

// outcomeActions says in words what applyDecision does, in its order.
func outcomeActions(n interruption.Notice, o interruption.Response) (actions []string) {
	add := func(needed bool, format string, args ...any) {
		if needed {
			actions = append(actions, fmt.Sprintf(format, args...))
		}
	}
	node := o.Claim.NodeName
	leave := func() {
		add(node != "" && (o.DeleteClaim || !o.Claim.Deleting.IsZero()) && !o.Release,
			"taint node %s for termination", node)
		add(node != "" && o.Pods != interruption.LeaveToDrain, "delete the pods of node %s", node)
		add(o.Release, "release NodeClaim %s and its node", o.Claim.Name)
	}
	if n.Urgent() {
		leave()
	}
	add(len(o.Unavailable) > 0, "mark %d offerings as unavailable", len(o.Unavailable))
	add(len(noticeAnnotations(o)) > 0, "annotate NodeClaim %s", o.Claim.Name)
	add(o.DeleteClaim, "delete NodeClaim %s: %s", o.Claim.Name, o.Why)
	add(o.Provide, "wake provision")
	if !n.Urgent() && n.Kind != interruption.Rebalance {
		leave()
	}
	add(o.Drain, "wake lifecycle")
	for _, t := range o.Tell {
		add(true, "record event %s on NodeClaim %s: %s", t.Reason, o.Claim.Name, t.Message)
	}
	return actions
}

// deleteInterruptedClaim marks the offering, writes onto the claim what is to be known when it goes, and deletes it.
func (c *Controller) deleteInterruptedClaim(ctx context.Context, n interruption.Notice,
	o interruption.Response) error {
	if err := c.markUnavailable(ctx, n, o); err != nil {
		return err
	}
	if set := noticeAnnotations(o); len(set) > 0 {
		if o.DeleteClaim {
			set[v1.AnnotationDeletionReason] = string(n.Kind) // for metrics: no request is made for it alone
		}
		if _, err := c.Claims.AnnotateClaim(ctx, o.Claim, set); err != nil {
			return err
		}
	}
	if !o.DeleteClaim {
		return nil
	}
	return c.Claims.DeleteClaim(ctx, o.Claim)
}

// pendingConfirmations holds what is left to do until it is sure that somebody acts on an urgent notice.
type pendingConfirmations []func(context.Context) error

func (a *pendingConfirmations) wakeFunctions(ctx context.Context, w controllers.Waker, n interruption.Notice) error {
	insister, can := w.(ConfirmingWaker)
	if !can || !n.Urgent() {
		return w.Wake(ctx)
	}
	confirm, err := insister.WakeAndConfirm(ctx)
	if confirm != nil {
		*a = append(*a, confirm)
	}
	return err
}

func (a pendingConfirmations) awaitConfirmations(ctx context.Context) error {
	errs := make([]error, len(a))
	controllers.ForEach(len(a), a, func(k int, confirm func(context.Context) error) { errs[k] = confirm(ctx) })
	return errors.Join(errs...)
}

func (c *Controller) markUnavailable(ctx context.Context, n interruption.Notice, o interruption.Response) error {
	if len(o.Unavailable) == 0 {
		return nil
	}
	period := c.UnavailableFor
	if n.Kind == interruption.Rebalance {
		period = c.QuarantineFor
	}
	return c.Unavailable.MarkUnavailable(ctx, o.Unavailable, period)
}

func noticeAnnotations(o interruption.Response) map[string]string {
	set := map[string]string{}
	if !o.Deadline.IsZero() {
		set[v1.AnnotationTerminationTimestamp] = o.Deadline.UTC().Format(time.RFC3339)
	}
	if !o.First.IsZero() {
		set[v1.AnnotationDrainAfterReplacement] = o.First.UTC().Format(time.RFC3339)
	}
	if o.Leave.Cause != "" {
		set[v1.AnnotationReplaceRequested] = o.Leave.String()
	}
	return set
}
