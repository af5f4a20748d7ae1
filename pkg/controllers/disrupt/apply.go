package disrupt

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning/ceiling"
)

// commandApplier carries out the plan of one pass.
type commandApplier struct {
	d      *Controller
	s      cluster.Snapshot
	claims map[string]cluster.Claim
	nodes  map[string]cluster.Node // by claim
	gone   map[string]bool         // claims that this pass deleted
}

func (c *Controller) newApplier(s cluster.Snapshot) *commandApplier {
	w := &commandApplier{d: c, s: s, claims: map[string]cluster.Claim{}, nodes: map[string]cluster.Node{},
		gone: map[string]bool{}}
	for _, node := range s.StateNodes() {
		if node.Claim == nil {
			continue
		}
		w.claims[node.Claim.Name] = *node.Claim
		if node.Node != nil {
			w.nodes[node.Claim.Name] = *node.Node
		}
	}
	return w
}

// applyTaints taints nodes that are to take no pods because of NodeRollouts, before any pod is made to leave one of
// them, and takes the taint off those that are to again. One that fails does not stop the others.
func (m *commandApplier) applyTaints(ctx context.Context, p disruption.Plan) {
	each := func(claims []string, key string, about func([]string) disruption.Plan,
		change func(context.Context, cluster.Node, string) error) {
		for _, name := range claims {
			m.applyCommand(ctx, about([]string{name}), []string{name},
				func() error { return change(ctx, m.nodes[name], key) })
		}
	}
	taint, untaint := m.d.Moves.TaintRevision, m.d.Moves.UntaintRevision
	each(p.TaintFailed, v1.TaintFailedRevision,
		func(name []string) disruption.Plan { return disruption.Plan{TaintFailed: name} }, taint)
	each(p.UntaintFailed, v1.TaintFailedRevision,
		func(name []string) disruption.Plan { return disruption.Plan{UntaintFailed: name} }, untaint)
	each(p.TaintPrevious, v1.TaintPreviousRevision,
		func(name []string) disruption.Plan { return disruption.Plan{TaintPrevious: name} }, taint)
	each(p.UntaintPrevious, v1.TaintPreviousRevision,
		func(name []string) disruption.Plan { return disruption.Plan{UntaintPrevious: name} }, untaint)
}

// applyFinished finishes and takes back commands. One that fails does not stop the others.
func (m *commandApplier) applyFinished(ctx context.Context, p disruption.Plan) {
	for _, e := range p.Finish {
		m.applyCommand(ctx, disruption.Plan{Finish: []disruption.EndedCommand{e}}, e.Claims,
			func() error { return m.finishCommand(ctx, e) })
	}
	if len(p.Finish) > 0 && !controllers.WasRefused(ctx) {
		m.d.failed.NoteOutcome(ctx, "function lifecycle", m.d.Lifecycle.Wake(ctx), m.d.Now())
	}
	if slices.ContainsFunc(p.Finish, m.awaitsNominatedPods) && !controllers.WasRefused(ctx) {
		// which lets the pods that are evicted onto the nodes held for them
		m.wakeProvision(ctx)
	}
	for _, e := range p.RollBack {
		m.applyCommand(ctx, disruption.Plan{RollBack: []disruption.EndedCommand{e}}, e.Claims,
			func() error { return m.rollBack(ctx, e) })
	}
}

func (m *commandApplier) wakeProvision(ctx context.Context) {
	m.d.failed.NoteOutcome(ctx, "function provision", m.d.Provision.Wake(ctx), m.d.Now())
}

// applyCommand carries out one command, of which the plan consists, unless the pass may not write any more, or the same
// failed a moment ago. What changed meanwhile is left to the next pass.
func (m *commandApplier) applyCommand(ctx context.Context, command disruption.Plan, claims []string,
	do func() error) {
	m.d.TryStep(ctx, &m.d.failed, commandStep(command)+" of "+strings.Join(claims, ","), func() error {
		if may, err := controllers.MayWrite(ctx); err != nil || !may {
			controllers.LogDryRun(m.d.Log, command.Lines()...)
			return err
		}
		return m.d.Shield().Do("the disruption of "+strings.Join(claims, ","), do)
	})
}

// commandStep names what is done with the one command of the plan.
func commandStep(p disruption.Plan) string {
	switch {
	case len(p.Begin) > 0:
		return "begin disruption"
	case len(p.Finish) > 0:
		return "finish disruption"
	case len(p.TaintFailed) > 0:
		return "taint failed revision"
	case len(p.UntaintFailed) > 0:
		return "untaint failed revision"
	case len(p.TaintPrevious) > 0:
		return "taint previous revision"
	case len(p.UntaintPrevious) > 0:
		return "untaint previous revision"
	}
	return "roll back disruption"
}

// awaitsNominatedPods reports whether replacements of the command are held for the pods of its nodes.
func (m *commandApplier) awaitsNominatedPods(e disruption.EndedCommand) bool {
	return slices.ContainsFunc(m.s.Claims, func(c cluster.Claim) bool {
		return c.Annotations[disruption.AnnotationReplaces] == e.Command &&
			c.Annotations[v1.AnnotationNominatedOwners] != ""
	})
}

// finishCommand deletes the claims of the command. One that cannot be deleted does not keep the others.
func (m *commandApplier) finishCommand(ctx context.Context, e disruption.EndedCommand) error {
	var errs []error
	for _, name := range e.Claims {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: "DisruptionTerminating",
			Message: "Disrupting NodeClaim: " + e.Why})
		errs = append(errs, m.deleteClaim(ctx, name))
	}
	return errors.Join(errs...)
}

func (m *commandApplier) deleteClaim(ctx context.Context, name string) error {
	err := m.d.Claims.DeleteClaim(ctx, m.claims[name])
	if err == nil {
		m.gone[name] = true
	}
	return err
}

// ofClaimsLeft are the notes about claims that this pass has not deleted.
func (m *commandApplier) ofClaimsLeft(all []disruption.StabilityNote) []disruption.StabilityNote {
	return slices.DeleteFunc(slices.Clone(all), func(s disruption.StabilityNote) bool { return m.gone[s.Claim] })
}

// rollBack lets pods on the nodes again before it takes the marks away: a mark without a taint is taken back once more.
// A node of which that fails keeps its mark, and no other one. Marks stay while a replacement cannot be deleted.
func (m *commandApplier) rollBack(ctx context.Context, e disruption.EndedCommand) error {
	var errs []error
	var open []string
	for _, name := range e.Claims {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Warning: true, Reason: "DisruptionFailed",
			Message: "the disruption is taken back: " + e.Why})
		if n, ok := m.nodes[name]; ok {
			if err := m.d.Moves.UntaintNode(ctx, n); err != nil && !controllers.IsConflict(err) {
				errs = append(errs, err)
				continue
			}
		}
		open = append(open, name)
	}
	var left []error
	for _, name := range e.Unused {
		err := m.deleteClaim(ctx, name)
		if err != nil && m.isGivenUp(name) { // lifecycle deletes it, marks or not, once somebody may
			errs = append(errs, err)
			continue
		}
		left = append(left, err)
	}
	if err := errors.Join(left...); err != nil {
		return errors.Join(append(errs, err)...)
	}
	for _, name := range open {
		errs = append(errs, m.annotateClaim(ctx, name, "", nil))
	}
	return errors.Join(errs...)
}

// isGivenUp reports whether the claim got no instance in all its time, so that it is no capacity any more.
func (m *commandApplier) isGivenUp(claim string) bool {
	return slices.ContainsFunc(m.s.Claims, func(c cluster.Claim) bool {
		return c.Name == claim && c.NeverLaunched(m.d.Now(), m.d.Rules)
	})
}

// applyBegun begins commands, if what stands on their nodes is the same now as it was when they were decided. A claim
// whose command cannot be begun is remembered, so that later passes choose others.
func (m *commandApplier) applyBegun(ctx context.Context, p disruption.Plan, next *disruption.Memory) error {
	if len(p.Begin) == 0 {
		return nil
	}
	live, err := m.d.Read.ReadSnapshot(ctx)
	if err != nil {
		return err
	}
	live.Now, live.Rules = m.d.Now(), m.d.Rules
	check := disruption.NewLiveCheck(live, *next)
	var begun []plan.Launch
	for _, c := range p.Begin {
		why := ""
		checked := m.d.TryStep(ctx, &m.d.failed, "proof of the disruption of "+strings.Join(c.Claims, ","),
			func() error {
				if why = check.ChangedSince(c); why == "" {
					why = m.ceilingRefusal(live, begun, c, next)
				}
				return nil
			})
		if !checked {
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
		begun = append(begun, c.Launches...)
		m.applyCommand(ctx, disruption.Plan{Begin: []disruption.Command{c}}, c.Claims, func() error {
			because, err := m.beginCommand(ctx, c)
			if err != nil && (len(because) > 0 || !controllers.IsConflict(err)) {
				*next = next.WithFailure(c, because, m.d.Now())
			}
			return m.noteRefusedReplacement(ctx, c, err)
		})
	}
	if len(begun) > 0 && !controllers.WasRefused(ctx) {
		m.wakeProvision(ctx)
	}
	return nil
}

// ceilingRefusal says why the ceiling of the cluster does not allow the replacements of the command, or nothing. Such a
// command is remembered, so that later passes choose others.
func (m *commandApplier) ceilingRefusal(live cluster.Snapshot, begun []plan.Launch, c disruption.Command,
	next *disruption.Memory) string {
	live.Catalog, live.Classes = m.s.Catalog, m.s.Classes
	why := ceiling.Refusal(live, begun, c.Launches)
	if why != "" {
		*next = next.WithFailure(c, nil, m.d.Now())
	}
	return why
}

// noteRefusedReplacement makes an outcome of it that the API server refuses a replacement as invalid: the nodes stay,
// as they would where nothing replaces them. Any other error is returned.
func (m *commandApplier) noteRefusedReplacement(ctx context.Context, c disruption.Command, err error) error {
	labels, refused := controllers.RefusedLabels(err)
	if !refused {
		return err
	}
	m.d.Log.Warn("not begun: "+c.String(), "because", "the API server refuses a NodeClaim that replaces them", "labels",
		labels, "error", err)
	m.recordRejected(ctx, c, "the API server refuses a NodeClaim that would replace it: "+err.Error())
	return nil
}

// beginCommand writes the intent down, keeps pods off the nodes, and then stores the replacements: a node that may not
// be tainted has nothing launched for it. A command of which a part is missing is taken back by the next pass; one
// without replacements goes on with the nodes of which nothing is missing. With an error it returns the claims that
// alone are to blame, if it is about single ones.
func (m *commandApplier) beginCommand(ctx context.Context, c disruption.Command) (because []string, err error) {
	mark, message := c.AsMark(m.d.Now()), c.String()
	begins := &commandNodes{c: c}
	begins.each(ctx, func(name string) error {
		cond := &cluster.Condition{Type: v1.ConditionDisruptionReason, Status: "True", Reason: string(c.Reason),
			Message: message}
		return m.annotateClaim(ctx, name, mark.String(), cond)
	})
	if !begins.stopped {
		m.recordBalancedApproval(ctx, c)
	}
	begins.each(ctx, func(name string) error {
		m.recordOnClaimAndNode(ctx, name, cluster.Event{Reason: "DisruptionLaunching",
			Message: "Disrupting NodeClaim: " + message})
		return m.d.Moves.TaintNode(ctx, m.nodes[name])
	})
	if err := errors.Join(begins.errs...); err != nil {
		return begins.because, err
	}
	for _, l := range c.Launches {
		if err := m.createReplacement(ctx, l, c); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// commandNodes are the nodes of a command that begins.
type commandNodes struct {
	c       disruption.Command
	because []string // claims whose step failed, not by a conflict
	errs    []error
	failed  map[string]bool // claims whose step failed
	stopped bool            // nothing more is done: its replacements are for all nodes together
}

// each takes a step for each claim of which none has failed. In a command with replacements the first that fails is the
// last.
func (n *commandNodes) each(ctx context.Context, do func(claim string) error) {
	for _, name := range n.c.Claims {
		if n.stopped || n.failed[name] {
			continue
		}
		err := do(name)
		if err == nil {
			continue
		}
		if n.failed == nil {
			n.failed = map[string]bool{}
		}
		n.failed[name], n.stopped = true, len(n.c.Launches) > 0 || ctx.Err() != nil
		n.errs = append(n.errs, err)
		if !controllers.IsConflict(err) {
			n.because = append(n.because, name)
		}
	}
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
		m.recordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: made.Name, UID: made.UID,
			Reason: "DisruptionLaunching", Message: "it replaces others: " + c.String()})
	}
	return err
}

// annotateClaim writes or, when it is empty, removes what says that the claim takes part in a command.
func (m *commandApplier) annotateClaim(ctx context.Context, name, mark string, cond *cluster.Condition) error {
	c, err := m.d.Claims.AnnotateClaim(ctx, m.claims[name], map[string]string{disruption.AnnotationMark: mark})
	if err != nil {
		return err
	}
	kept := lists.Where(c.Conditions, func(k cluster.Condition) bool { return k.Type != v1.ConditionDisruptionReason })
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
