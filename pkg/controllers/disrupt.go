package controllers

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/decisionlog"
	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/metrics"
	"joiner/pkg/model/plan"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/scheduling/binpack"
)

// betweenPasses is how long a disruption that is under way or proposed is left alone between two looks at it.
const betweenPasses = 5 * time.Second

// placedFor is how long what EC2 says about instances is used for drift.
const placedFor = 2 * time.Minute

// NodeTainter keeps new pods off nodes that are about to go, as long as that can be taken back. All calls may be repeated; a node that is
// gone or was replaced has a method Conflict that reports true.
type NodeTainter interface {
	// TaintNode keeps new pods off the node.
	TaintNode(ctx context.Context, n cluster.Node) error
	// UntaintNode lets pods on it again.
	UntaintNode(ctx context.Context, n cluster.Node) error
}

// DisruptionMemory keeps what one pass about disruption tells the next.
type DisruptionMemory interface {
	// ReadMemory returns what was remembered last. May be repeated.
	ReadMemory(ctx context.Context) (disruption.Memory, error)
	// WriteMemory stores it. May be repeated.
	WriteMemory(ctx context.Context, m disruption.Memory) error
}

// InstanceLister tells which instances there are, and where. It may be repeated.
type InstanceLister interface {
	ListInstances(ctx context.Context) ([]cluster.Instance, error)
}

// Disrupt begins, ends and takes back disruptions. It launches nothing: it stores the NodeClaims of replacements, and provision
// launches them. What is under way stands on the objects, so it may die after any call.
type Disrupt struct {
	Deps

	Read      Reader
	Placed    InstanceLister
	Claims    Claims
	Moves     NodeTainter
	Lease     Lease
	SoldOut   UnavailableOfferings
	Prices    CatalogReader
	Levels    RemainingCapacity
	Notes     DisruptionMemory
	Provision Waker // launches replacements
	Lifecycle Waker // drains
	Off       bool  // with Rules.ReportDisruption: there is a pass only while something is under way, which takes it back

	Depot *binpack.OfferingCache // what is sold, kept from one pass to the next; nil: for this invocation
	Diary DecisionLog            // nil: no decision log
	Stamp decisionlog.PassStamp

	decide func(cluster.Snapshot, disruption.Memory, binpack.Offerings, *binpack.OfferingCache) (disruption.Plan, disruption.Memory) // nil: disruption.NextFrom
	said   string
	placed []cluster.Instance // as they were at
	at     time.Time
	kept   decisionLog
}

// Run passes until nothing is proposed or under way, or until the time given. A pass that takes as long as the longest before ends by then.
func (d *Disrupt) Run(ctx context.Context, until time.Time) error {
	if d.Depot == nil {
		d.Depot = &binpack.OfferingCache{}
	}
	longest := time.Duration(0)
	for {
		start := d.Now()
		under := beginPass(ctx, d.Permission)
		busy, held, err := d.lockAndRun(under)
		if err != nil || wasRefused(under) {
			return err
		}
		longest = max(longest, d.Now().Sub(start))
		if held && !busy || !d.Now().Add(betweenPasses+longest).Before(until) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(betweenPasses):
		}
	}
}

// lockAndRun is a pass by the holder of the lease, if there is something to look at. It takes seconds in a large cluster, so it comes after what
// provision needs the lease for at once: replacements of what EC2 takes back.
func (d *Disrupt) lockAndRun(ctx context.Context) (busy, held bool, err error) {
	claims, err := d.Read.ListClaims(ctx)
	switch {
	case err != nil || len(claims) == 0 || d.Off && !slices.ContainsFunc(claims, hasCommand):
		return false, true, err
	case interruption.AwaitsReplacement(claims, d.Now()):
		d.Log.Info("skipped: pods wait for replacements of interrupted nodes")
		return true, true, nil
	}
	may, err := mayWrite(ctx)
	if err != nil {
		return false, true, err
	}
	if !may {
		busy, err = d.shield().pass(d.runPass)(ctx)
		return busy, true, err
	}
	return capacityLease{d.Lease, d.Holder}.withCapacityLease(ctx, d.shield().pass(d.runPass))
}

// hasCommand reports whether a disruption of the claim is under way.
func hasCommand(c cluster.Claim) bool { return c.Annotations[disruption.AnnotationMark] != "" }

// runPass decides once and has it done: first what ends, then what begins.
func (d *Disrupt) runPass(ctx context.Context) (busy bool, err error) {
	memory, err := d.Notes.ReadMemory(ctx)
	if err != nil {
		return false, err
	}
	s, err := d.readSnapshot(ctx)
	if err != nil {
		return false, err
	}
	sells := d.Depot.Offerings(s)
	if err := d.markDrift(ctx, &s, sells); err != nil {
		return false, err
	}
	if s, err = withVolumes(ctx, d.Read, s, disruption.MayEmpty(s)); err != nil {
		return false, err
	}
	start := d.Now()
	decision, next, err := d.decideWithin(ctx, s, memory, sells)
	if err != nil {
		return false, err
	}
	all := nodesStaying(decision, s)
	next.Stays = updateRetention(all, memory.Stays, s.Now)
	d.logPlan(decision, all, next.Stays)
	if d.Metrics != nil {
		d.Metrics.Put(decisionMetrics(decision, d.Now().Sub(start))...)
	}
	d.kept.to, d.kept.stamp, d.kept.warn = d.Diary, d.Stamp, d.Log.Warn
	d.shield().report(decision.Faults...)
	d.kept.recordTick(ctx, d.said, nil, func(st decisionlog.PassStamp) (decisionlog.Tick, error) {
		return decisionlog.OfDisrupt(st, s, memory, decision)
	})
	if may, err := mayWrite(ctx); err != nil || !may {
		logDryRun(d.Log, disruption.Plan{Finish: decision.Finish, Undo: decision.Undo, Begin: decision.Begin}.Lines()...)
		return false, err
	}
	w := d.newApplier(s)
	err = errors.Join(w.applyFinished(ctx, decision), w.applyBegun(ctx, decision, next))
	_ = d.shield().do("what is told", func() error { // logged
		w.recordNotDisrupted(ctx, decision.Spared)
		w.recordBudgetExhausted(ctx, decision.Closed)
		w.recordConsidered(ctx, decision, memory.Proposals)
		w.recordStarting(ctx, decision)
		w.recordProtection(ctx)
		w.recordInvalidProtection(ctx)
		w.recordReasons(ctx, all, next.Stays)
		return nil
	})
	err = errors.Join(err, d.markStill(ctx, w.claims, decision.Still))
	busy = len(decision.Begin)+len(decision.Finish)+len(decision.Undo)+len(decision.Proposed)+len(decision.Waiting) > 0
	return busy, errors.Join(err, d.writeMemory(ctx, next))
}

// writeMemory stores what the next pass is to know. A pass that may not write leaves no trace.
func (d *Disrupt) writeMemory(ctx context.Context, m disruption.Memory) error {
	if may, err := mayWrite(ctx); err != nil || !may {
		return err
	}
	return d.Notes.WriteMemory(ctx, m)
}

// listInstances asks EC2 once in a while: what an instance was put into hardly changes. Without an answer the verdicts of before stay.
func (d *Disrupt) listInstances(ctx context.Context) []cluster.Instance {
	if now := d.Now(); d.at.IsZero() || now.Sub(d.at) >= placedFor {
		placed, err := d.Placed.ListInstances(ctx)
		if err != nil {
			d.Log.Warn("drift of security groups and subnets is not looked for", "error", err)
			return nil
		}
		d.placed, d.at = placed, now
	}
	return d.placed
}

func (d *Disrupt) readSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return observer{d.Read, d.Prices, d.SoldOut, d.Levels, d.Rules, d.Now, d.Log}.readSnapshot(ctx)
}

// logPlan logs the plan unless the pass before had the same, and of nodes that stay what is news.
func (d *Disrupt) logPlan(p disruption.Plan, all []disruption.NotDisrupted, stays map[string]disruption.Retention) {
	lines := p.Lines()
	text := fmt.Sprint(lines)
	if text == d.said {
		return
	}
	d.said = text
	for _, line := range lines[:len(lines)-len(p.Spared)] {
		d.Log.Info(line)
	}
	logStays(d.Log, all, stays, d.Now())
	words := map[string]int{}
	for _, s := range all {
		words[s.Word]++
	}
	d.Log.Info("disruption", "begin", len(p.Begin), "finish", len(p.Finish), "undo", len(p.Undo), "proposed", len(p.Proposed),
		"reported", len(p.Reported), "waiting", len(p.Waiting), "spared", words)
}

// commandApplier carries out the plan of one pass.
type commandApplier struct {
	d      *Disrupt
	s      cluster.Snapshot
	claims map[string]cluster.Claim
	nodes  map[string]cluster.Node // by claim
}

func (d *Disrupt) newApplier(s cluster.Snapshot) *commandApplier {
	w := &commandApplier{d: d, s: s, claims: map[string]cluster.Claim{}, nodes: map[string]cluster.Node{}}
	for _, h := range s.StateNodes() {
		if h.Claim == nil {
			continue
		}
		w.claims[h.Claim.Name] = *h.Claim
		if h.Node != nil {
			w.nodes[h.Claim.Name] = *h.Node
		}
	}
	return w
}

// applyFinished finishes and takes back commands. One that fails does not stop the others.
func (m *commandApplier) applyFinished(ctx context.Context, p disruption.Plan) error {
	var errs []error
	for _, e := range p.Finish {
		errs = append(errs, m.one(ctx, disruption.Plan{Finish: []disruption.EndedCommand{e}}, e.Claims, func() error { return m.finishCommand(ctx, e) }))
	}
	if len(p.Finish) > 0 && !wasRefused(ctx) {
		errs = append(errs, m.d.Lifecycle.Wake(ctx))
	}
	if slices.ContainsFunc(p.Finish, m.awaitsNominatedPods) && !wasRefused(ctx) {
		errs = append(errs, m.d.Provision.Wake(ctx)) // which lets the pods that are evicted onto the nodes held for them
	}
	for _, e := range p.Undo {
		errs = append(errs, m.one(ctx, disruption.Plan{Undo: []disruption.EndedCommand{e}}, e.Claims, func() error { return m.rollBack(ctx, e) }))
	}
	return errors.Join(errs...)
}

// one carries out one command, of which the plan consists, unless the pass may not write any more. What changed meanwhile is left to the next pass.
func (m *commandApplier) one(ctx context.Context, command disruption.Plan, claims []string, do func() error) error {
	if may, err := mayWrite(ctx); err != nil || !may {
		logDryRun(m.d.Log, command.Lines()...)
		return err
	}
	return m.guarded(claims, do)
}

// guarded does something about one command.
func (m *commandApplier) guarded(claims []string, do func() error) error {
	return unlessConflict(m.d.Log, m.d.shield().do("the disruption of "+strings.Join(claims, ","), do))
}

// awaitsNominatedPods reports whether replacements of the command are held for the pods of its nodes.
func (m *commandApplier) awaitsNominatedPods(e disruption.EndedCommand) bool {
	return slices.ContainsFunc(m.s.Claims, func(c cluster.Claim) bool {
		return c.Annotations[disruption.AnnotationReplaces] == e.Command && c.Annotations[v1.AnnotationNominatedOwners] != ""
	})
}

func (m *commandApplier) finishCommand(ctx context.Context, e disruption.EndedCommand) error {
	for _, name := range e.Claims {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: "DisruptionTerminating", Message: "Disrupting NodeClaim: " + e.Why})
		if err := m.d.Claims.DeleteClaim(ctx, m.claims[name]); err != nil {
			return err
		}
	}
	return nil
}

// rollBack lets pods on the nodes again before it takes the marks away: a mark without a taint is taken back once more.
func (m *commandApplier) rollBack(ctx context.Context, e disruption.EndedCommand) error {
	for _, name := range e.Claims {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Warning: true, Reason: "DisruptionFailed", Message: "the disruption is taken back: " + e.Why})
		if n, ok := m.nodes[name]; ok {
			if err := m.d.Moves.UntaintNode(ctx, n); err != nil && !isConflict(err) {
				return err
			}
		}
	}
	for _, name := range e.Unused {
		if err := m.d.Claims.DeleteClaim(ctx, m.claims[name]); err != nil {
			return err
		}
	}
	for _, name := range e.Claims {
		if err := m.annotateClaim(ctx, name, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// applyBegun begins commands, if what stands on their nodes is the same now as it was when they were decided.
func (m *commandApplier) applyBegun(ctx context.Context, p disruption.Plan, next disruption.Memory) error {
	if len(p.Begin) == 0 {
		return nil
	}
	live, err := m.d.Read.ReadSnapshot(ctx)
	if err != nil {
		return err
	}
	live.Now, live.Rules = m.d.Now(), m.d.Rules
	var errs []error
	launches := false
	for _, c := range p.Begin {
		why := ""
		if err := m.guarded(c.Claims, func() error { why = disruption.ChangedSince(live, c, next); return nil }); err != nil {
			errs = append(errs, err)
			continue
		}
		if why != "" {
			m.d.Log.Info("not begun: "+c.String(), "because", why)
			m.recordRejected(ctx, c, why)
			if m.d.Metrics != nil {
				m.d.Metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Total(metrics.Invalidated, 1)}})
			}
			continue
		}
		launches = launches || len(c.Launches) > 0
		errs = append(errs, m.one(ctx, disruption.Plan{Begin: []disruption.Command{c}}, c.Claims, func() error { return m.beginCommand(ctx, c) }))
	}
	if launches && !wasRefused(ctx) {
		errs = append(errs, m.d.Provision.Wake(ctx))
	}
	return errors.Join(errs...)
}

// beginCommand writes the intent down, stores the replacements, and then keeps pods off the nodes. A command of which a part is missing is
// taken back by the next pass.
func (m *commandApplier) beginCommand(ctx context.Context, c disruption.Command) error {
	mark := c.AsMark(m.d.Now())
	for _, name := range c.Claims {
		cond := &cluster.Condition{Type: v1.ConditionDisruptionReason, Status: "True", Reason: string(c.Reason), Message: c.String()}
		if err := m.annotateClaim(ctx, name, mark.String(), cond); err != nil {
			return err
		}
	}
	m.recordApproved(ctx, c)
	for _, l := range c.Launches {
		if err := m.createReplacement(ctx, l, c); err != nil {
			return err
		}
	}
	for _, name := range c.Claims {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: "DisruptionLaunching", Message: "Disrupting NodeClaim: " + c.String()})
		if err := m.d.Moves.TaintNode(ctx, m.nodes[name]); err != nil {
			return err
		}
	}
	return nil
}

// createReplacement stores the NodeClaim of one replacement, which provision launches.
func (m *commandApplier) createReplacement(ctx context.Context, l plan.Launch, c disruption.Command) error {
	pool, ok := m.s.PoolOf(l.Pool)
	if !ok {
		return fmt.Errorf("replacement from pool %s: it is gone", l.Pool)
	}
	l.Annotations[disruption.AnnotationReplaces] = c.ID
	made, err := m.d.Claims.CreateClaim(ctx, l, pool)
	if err == nil {
		m.recordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: made.Name, UID: made.UID, Reason: "DisruptionLaunching", Message: "it replaces others: " + c.String()})
	}
	return err
}

// annotateClaim writes or, when it is empty, removes what says that the claim takes part in a command.
func (m *commandApplier) annotateClaim(ctx context.Context, name, mark string, cond *cluster.Condition) error {
	c, err := m.d.Claims.AnnotateClaim(ctx, m.claims[name], map[string]string{disruption.AnnotationMark: mark})
	if err != nil {
		return err
	}
	var kept []cluster.Condition
	for _, k := range c.Conditions {
		if k.Type != v1.ConditionDisruptionReason {
			kept = append(kept, k)
		}
	}
	if c.Conditions = kept; cond != nil {
		c.Conditions = append(c.Conditions, *cond)
	}
	c, err = m.d.Claims.WriteClaimStatus(ctx, c)
	m.claims[name] = c
	return err
}

// recordOnClaimAndNode writes an event on the claim and its node.
func (m *commandApplier) recordOnClaimAndNode(ctx context.Context, name string, what cluster.Event) {
	about := []cluster.Event{{Kind: "NodeClaim", Name: name, UID: m.claims[name].UID}}
	if n, ok := m.nodes[name]; ok {
		about = append(about, cluster.Event{Kind: "Node", Name: n.Name, UID: n.UID})
	}
	for _, e := range about {
		e.Warning, e.Reason, e.Message, e.Every = what.Warning, what.Reason, what.Message, what.Every
		m.recordEvent(ctx, e)
	}
}
