package disruption

import (
	"fmt"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// commandFault tells why a command cannot end well.
type commandFault struct {
	why        string
	of         []*stateNode // its nodes that are in the way of the others; empty where it is not known which are
	ofRevision bool         // the revision of a replacement failed in a NodeRollout
}

// commandFailure returns why a command cannot end well, without a reason where it can.
func (pr *progress) commandFailure(r *runningCommand) commandFault {
	alive := lists.Count(r.with, func(n *stateNode) bool { return !n.Deleting() })
	untainted := lists.Where(r.claims, func(n *stateNode) bool { return n.Node == nil || !n.Node.IsTaintedDisrupted() })
	switch {
	case r.mark.ID == "":
		return commandFault{why: "its mark cannot be read"}
	case len(untainted) > 0: // before its replacements, which are made later
		return commandFault{why: "node " + untainted[0].Name() + " was not tainted, or the taint was removed",
			of: untainted}
	case alive < r.mark.Replacements:
		return commandFault{why: fmt.Sprintf("%d of %d replacements are gone", r.mark.Replacements-alive,
			r.mark.Replacements)}
	case !pr.state.now().Before(r.mark.Since.Add(replaceTimeout)):
		return commandFault{why: fmt.Sprintf("its pods had no room elsewhere within %s", replaceTimeout)}
	}
	if reported := lists.Where(r.claims, pr.state.isReportOnly); len(reported) > 0 {
		return commandFault{why: "disruption of " + reported[0].Claim.Name + " is only reported by now", of: reported}
	}
	for _, n := range r.claims {
		if why := pr.protectedMeanwhile(r.mark.Reason, n); why != "" {
			return commandFault{why: why, of: []*stateNode{n}}
		}
	}
	return commandFault{}
}

// protectedMeanwhile returns who protects a node of a command under way, or nothing.
func (pr *progress) protectedMeanwhile(reason v1.DisruptionReason, n *stateNode) string {
	if isProtected(n) {
		return fmt.Sprintf("node %s carries %s meanwhile", n.Name(), v1.AnnotationDoNotDisrupt)
	}
	if reason == v1.DisruptionDrifted && n.Claim.TerminationGrace != nil {
		return ""
	}
	for _, p := range n.pods {
		if p.Active() && p.Protected(pr.state.now()) {
			return fmt.Sprintf("pod %s carries %s meanwhile", p.Key(), v1.AnnotationDoNotDisrupt)
		}
	}
	return ""
}

// ended returns the end of the command, without what it made.
func (r *runningCommand) ended(why string) EndedCommand {
	return EndedCommand{Command: r.mark.ID, Reason: r.mark.Reason, Claims: namesOf(r.claims), Why: why}
}

// splitUnreplaced ends a command without replacements for a part of its nodes: for those that cannot go, and for those
// that can where others wait. Such nodes need nothing of each other.
func (pr *progress) splitUnreplaced(r *runningCommand, late func(*runningCommand) string, p *Plan) {
	part := func(claims []*stateNode) *runningCommand { return &runningCommand{mark: r.mark, claims: claims} }
	drop := func(some []*stateNode) {
		r.claims = lists.Where(r.claims, func(n *stateNode) bool { return !slices.Contains(some, n) })
	}
	for r.mark.Replacements == 0 {
		f := pr.commandFailure(r)
		if f.why == "" {
			break
		}
		if len(f.of) == 0 || len(f.of) == len(r.claims) {
			return
		}
		pr.rollBack(part(f.of), f, p)
		drop(f.of)
	}
	if r.mark.Replacements > 0 || late(r) == "" {
		return
	}
	ready := lists.Where(r.claims, func(n *stateNode) bool { return late(part([]*stateNode{n})) == "" })
	if len(ready) > 0 && pr.awaitsClosing(part(ready)) == "" {
		pr.finish(part(ready), p)
		drop(ready)
	}
}

// finish ends the command, whose nodes go now.
func (pr *progress) finish(r *runningCommand, p *Plan) {
	e := r.ended(fmt.Sprintf("%s, all its pods fit on nodes that are ready", r.mark.Reason))
	if pr.state.isStaticCommand(e.Claims) {
		e.Why = fmt.Sprintf("%s, its replacement is ready", r.mark.Reason)
	}
	pr.ongoing[r.mark.ID] = true
	pr.noteOutcome(r, false)
	p.Finish = append(p.Finish, e)
}

// rollBack rolls the command back, with those of its replacements that nothing runs on.
func (pr *progress) rollBack(r *runningCommand, f commandFault, p *Plan) {
	e := r.ended(f.why)
	for _, n := range r.with {
		if len(n.moving) == 0 && n.Claim.Deleting.IsZero() && !isProtected(n) && !pr.isExpectedOn(n) &&
			!n.isHalted() && !n.isTried() {
			e.Unused = append(e.Unused, n.Claim.Name)
		}
	}
	p.RollBack = append(p.RollBack, e)
	// else it is no failure, and the reports are about them as well
	if !f.ofRevision && !slices.ContainsFunc(r.claims, pr.state.isReportOnly) {
		pr.rememberFailure(r, f)
	}
}
