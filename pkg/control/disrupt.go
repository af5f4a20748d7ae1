package control

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/interrupt"
	"joiner/pkg/metric"
	"joiner/pkg/pack"
	"joiner/pkg/plan"
	"joiner/pkg/tick"
)

// betweenPasses is how long a disruption that is under way or proposed is left alone between two looks at it.
const betweenPasses = 5 * time.Second

// placedFor is how long what EC2 says about instances is used for drift (spec aws.md §3.9).
const placedFor = 2 * time.Minute

// Moves keeps new pods off nodes that are about to go, as long as that can be taken back. All calls may be repeated; a node that is
// gone or was replaced has a method Conflict that reports true.
type Moves interface {
	// TaintNode keeps new pods off the node.
	TaintNode(ctx context.Context, n cluster.Node) error
	// UntaintNode lets pods on it again.
	UntaintNode(ctx context.Context, n cluster.Node) error
}

// Notes keeps what one pass about disruption tells the next.
type Notes interface {
	// Recall returns what was remembered last. May be repeated.
	Recall(ctx context.Context) (disrupt.Memory, error)
	// Remember stores it. May be repeated.
	Remember(ctx context.Context, m disrupt.Memory) error
}

// Placements tells which instances there are, and where. It may be repeated.
type Placements interface {
	Instances(ctx context.Context) ([]cluster.Instance, error)
}

// Disrupt begins, ends and takes back disruptions. It launches nothing: it stores the NodeClaims of replacements, and provision
// launches them. What is under way stands on the objects, so it may die after any call.
type Disrupt struct {
	Read      Reader
	Placed    Placements
	Claims    Claims
	Moves     Moves
	Record    Recorder
	Lease     Lease
	SoldOut   SoldOut
	Prices    Prices
	Levels    Levels
	Notes     Notes
	Provision Waker // launches replacements
	Lifecycle Waker // drains
	Metrics   Metrics
	Rules     cluster.Rules
	Off       bool   // with Rules.ReportDisruption: there is a pass only while something is under way, which takes it back
	Holder    string // names this invocation as the holder of the lease
	Now       func() time.Time
	Log       *slog.Logger

	Depot *pack.Depot // what is sold, kept from one pass to the next; nil: for this invocation
	Diary Diary       // nil: no decision log
	Stamp tick.Stamp

	decide func(cluster.Snapshot, disrupt.Memory, pack.Market, *pack.Depot) (disrupt.Plan, disrupt.Memory) // nil: disrupt.NextFrom
	said   string
	placed []cluster.Instance // as they were at
	at     time.Time
	kept   diary
}

// Run passes until nothing is proposed or under way, or until the time given. A pass that takes as long as the longest before ends by then.
func (d *Disrupt) Run(ctx context.Context, until time.Time) error {
	if d.Depot == nil {
		d.Depot = &pack.Depot{}
	}
	longest := time.Duration(0)
	for {
		start := d.Now()
		busy, held, err := d.look(ctx)
		if err != nil {
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

// look is a pass by the holder of the lease, if there is something to look at. It takes seconds in a large cluster, so it comes after what
// provision needs the lease for at once: replacements of what EC2 takes back.
func (d *Disrupt) look(ctx context.Context) (busy, held bool, err error) {
	claims, err := d.Read.Claims(ctx)
	switch {
	case err != nil || len(claims) == 0 || d.Off && !slices.ContainsFunc(claims, marked):
		return false, true, err
	case interrupt.Awaited(claims, d.Now()):
		d.Log.Info("nothing is disrupted by choice while pods wait for replacements of what EC2 takes back")
		return true, true, nil
	}
	return sole{d.Lease, d.Holder}.alone(ctx, d.shield().pass(d.pass))
}

func (d *Disrupt) shield() shield { return shield{d.Log, d.Metrics} }

// marked reports whether a disruption of the claim is under way.
func marked(c cluster.Claim) bool { return c.Annotations[disrupt.AnnotationMark] != "" }

// pass decides once and has it done: first what ends, then what begins.
func (d *Disrupt) pass(ctx context.Context) (busy bool, err error) {
	memory, err := d.Notes.Recall(ctx)
	if err != nil {
		return false, err
	}
	s, err := d.snapshot(ctx)
	if err != nil {
		return false, err
	}
	sells := d.Depot.Sells(s)
	if err := d.markDrift(ctx, &s, sells); err != nil {
		return false, err
	}
	if s, err = withVolumes(ctx, d.Read, s, disrupt.MayEmpty(s)); err != nil {
		return false, err
	}
	start := d.Now()
	decision, next, err := d.decided(ctx, s, memory, sells)
	if err != nil {
		return false, err
	}
	all := staying(decision, s)
	next.Stays = stays(all, memory.Stays, s.Now)
	d.say(decision, all, next.Stays)
	if d.Metrics != nil {
		d.Metrics.Put(decisions(decision, d.Now().Sub(start))...)
	}
	d.kept.to, d.kept.stamp, d.kept.warn = d.Diary, d.Stamp, d.Log.Warn
	d.shield().report(decision.Faults...)
	d.kept.keep(ctx, d.said, nil, func(st tick.Stamp) (tick.Tick, error) { return tick.OfDisrupt(st, s, memory, decision) })
	w := mover{d: d, s: s, claims: map[string]cluster.Claim{}, nodes: map[string]cluster.Node{}}
	for _, h := range s.Hosts() {
		if h.Claim == nil {
			continue
		}
		w.claims[h.Claim.Name] = *h.Claim
		if h.Node != nil {
			w.nodes[h.Claim.Name] = *h.Node
		}
	}
	err = errors.Join(w.ends(ctx, decision), w.begins(ctx, decision, next))
	_ = d.shield().do("what is told", func() error { // logged
		w.tellSpared(ctx, decision.Spared)
		w.tellClosed(ctx, decision.Closed)
		w.tellConsidered(ctx, decision, memory.Proposals)
		w.tellStarting(ctx, decision)
		w.tellProtection(ctx)
		w.tellMisprotected(ctx)
		w.explain(ctx, all, next.Stays)
		return nil
	})
	err = errors.Join(err, d.markStill(ctx, w.claims, decision.Still))
	busy = len(decision.Begin)+len(decision.Finish)+len(decision.Undo)+len(decision.Proposed)+len(decision.Waiting) > 0
	return busy, errors.Join(err, d.Notes.Remember(ctx, next))
}

// instances asks EC2 once in a while: what an instance was put into hardly changes. Without an answer the verdicts of before stay.
func (d *Disrupt) instances(ctx context.Context) []cluster.Instance {
	if now := d.Now(); d.at.IsZero() || now.Sub(d.at) >= placedFor {
		placed, err := d.Placed.Instances(ctx)
		if err != nil {
			d.Log.Warn("drift of security groups and subnets is not looked for", "error", err)
			return nil
		}
		d.placed, d.at = placed, now
	}
	return d.placed
}

func (d *Disrupt) snapshot(ctx context.Context) (cluster.Snapshot, error) {
	return market{d.Read, d.Prices, d.SoldOut, d.Levels, d.Rules, d.Now, d.Log}.snapshot(ctx)
}

// say logs the plan unless the pass before had the same, and of nodes that stay what is news.
func (d *Disrupt) say(p disrupt.Plan, all []disrupt.Spared, stays map[string]disrupt.Stay) {
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

// mover carries out the plan of one pass.
type mover struct {
	d      *Disrupt
	s      cluster.Snapshot
	claims map[string]cluster.Claim
	nodes  map[string]cluster.Node // by claim
}

// ends finishes and takes back commands. One that fails does not stop the others.
func (m *mover) ends(ctx context.Context, p disrupt.Plan) error {
	var errs []error
	for _, e := range p.Finish {
		errs = append(errs, m.one(e.Claims, func() error { return m.finish(ctx, e) }))
	}
	if len(p.Finish) > 0 {
		errs = append(errs, m.d.Lifecycle.Wake(ctx))
	}
	if slices.ContainsFunc(p.Finish, m.held) {
		errs = append(errs, m.d.Provision.Wake(ctx)) // which lets the pods that are evicted onto the nodes held for them
	}
	for _, e := range p.Undo {
		errs = append(errs, m.one(e.Claims, func() error { return m.undo(ctx, e) }))
	}
	return errors.Join(errs...)
}

// one does something about one command. What changed meanwhile is left to the next pass.
func (m *mover) one(claims []string, do func() error) error {
	return unlessConflict(m.d.Log, m.d.shield().do("the disruption of "+strings.Join(claims, ","), do))
}

// held reports whether replacements of the command are held for the pods of its nodes.
func (m *mover) held(e disrupt.Ended) bool {
	return slices.ContainsFunc(m.s.Claims, func(c cluster.Claim) bool {
		return c.Annotations[disrupt.AnnotationReplaces] == e.Command && c.Annotations[cluster.AnnotationHeldFor] != ""
	})
}

func (m *mover) finish(ctx context.Context, e disrupt.Ended) error {
	for _, name := range e.Claims {
		m.tell(ctx, name, cluster.Event{Reason: "DisruptionTerminating", Message: "Disrupting NodeClaim: " + e.Why})
		if err := m.d.Claims.DeleteClaim(ctx, m.claims[name]); err != nil {
			return err
		}
	}
	return nil
}

// undo lets pods on the nodes again before it takes the marks away: a mark without a taint is taken back once more.
func (m *mover) undo(ctx context.Context, e disrupt.Ended) error {
	for _, name := range e.Claims {
		m.tell(ctx, name, cluster.Event{Warning: true, Reason: "DisruptionFailed", Message: "the disruption is taken back: " + e.Why})
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
		if err := m.mark(ctx, name, "", nil); err != nil {
			return err
		}
	}
	return nil
}

// begins begins commands, if what stands on their nodes is the same now as it was when they were decided.
func (m *mover) begins(ctx context.Context, p disrupt.Plan, next disrupt.Memory) error {
	if len(p.Begin) == 0 {
		return nil
	}
	live, err := m.d.Read.Snapshot(ctx)
	if err != nil {
		return err
	}
	live.Now, live.Rules = m.d.Now(), m.d.Rules
	var errs []error
	launches := false
	for _, c := range p.Begin {
		why := ""
		if err := m.one(c.Claims, func() error { why = disrupt.Changed(live, c, next); return nil }); err != nil {
			errs = append(errs, err)
			continue
		}
		if why != "" {
			m.d.Log.Info("not begun: "+c.String(), "because", why)
			m.rejected(ctx, c, why)
			if m.d.Metrics != nil {
				m.d.Metrics.Put(metric.Record{Values: []metric.Value{metric.Total(metric.Invalidated, 1)}})
			}
			continue
		}
		launches = launches || len(c.Launches) > 0
		errs = append(errs, m.one(c.Claims, func() error { return m.begin(ctx, c) }))
	}
	if launches {
		errs = append(errs, m.d.Provision.Wake(ctx))
	}
	return errors.Join(errs...)
}

// begin writes the intent down, stores the replacements, and then keeps pods off the nodes. A command of which a part is missing is
// taken back by the next pass.
func (m *mover) begin(ctx context.Context, c disrupt.Command) error {
	mark := c.Mark(m.d.Now())
	for _, name := range c.Claims {
		cond := &cluster.Condition{Type: v1.ConditionDisruptionReason, Status: "True", Reason: string(c.Reason), Message: c.String()}
		if err := m.mark(ctx, name, mark.String(), cond); err != nil {
			return err
		}
	}
	m.approved(ctx, c)
	for _, l := range c.Launches {
		if err := m.replacement(ctx, l, c); err != nil {
			return err
		}
	}
	for _, name := range c.Claims {
		m.tell(ctx, name, cluster.Event{Reason: "DisruptionLaunching", Message: "Disrupting NodeClaim: " + c.String()})
		if err := m.d.Moves.TaintNode(ctx, m.nodes[name]); err != nil {
			return err
		}
	}
	return nil
}

// replacement stores the NodeClaim of one replacement, which provision launches.
func (m *mover) replacement(ctx context.Context, l plan.Launch, c disrupt.Command) error {
	pool, ok := m.s.PoolOf(l.Pool)
	if !ok {
		return fmt.Errorf("replacement from pool %s: it is gone", l.Pool)
	}
	l.Annotations[disrupt.AnnotationReplaces] = c.ID
	made, err := m.d.Claims.CreateClaim(ctx, l, pool)
	if err == nil {
		m.about(ctx, cluster.Event{Kind: "NodeClaim", Name: made.Name, UID: made.UID, Reason: "DisruptionLaunching", Message: "it replaces others: " + c.String()})
	}
	return err
}

// mark writes or, when it is empty, removes what says that the claim takes part in a command.
func (m *mover) mark(ctx context.Context, name, mark string, cond *cluster.Condition) error {
	c, err := m.d.Claims.AnnotateClaim(ctx, m.claims[name], map[string]string{disrupt.AnnotationMark: mark})
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

// tell writes an event on the claim and its node.
func (m *mover) tell(ctx context.Context, name string, what cluster.Event) {
	about := []cluster.Event{{Kind: "NodeClaim", Name: name, UID: m.claims[name].UID}}
	if n, ok := m.nodes[name]; ok {
		about = append(about, cluster.Event{Kind: "Node", Name: n.Name, UID: n.UID})
	}
	for _, e := range about {
		e.Warning, e.Reason, e.Message, e.Every = what.Warning, what.Reason, what.Message, what.Every
		m.about(ctx, e)
	}
}
