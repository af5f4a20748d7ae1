package disrupt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/pack"
	"joiner/pkg/topology"
)

// running is a command under way, as its objects tell.
type running struct {
	mark   Mark
	claims []*node // that go and are not being deleted yet
	with   []*node // replacements
}

// progress looks after the commands under way (spec core.md §6.8): one whose pods all fit on nodes that are ready is finished, one
// that cannot end well is taken back, the others wait.
func (v *view) progress(p *Plan) {
	late, going := v.homeless(), v.going()
	for _, r := range v.underWay() {
		v.planted(stageProgress, r.claims)
		p.Starting = append(p.Starting, r.starting()...)
		e := Ended{Command: r.mark.ID, Reason: r.mark.Reason, Claims: namesOf(r.claims)}
		fault := v.failed(r)
		missing := late(r)
		if fault == "" && missing != "" {
			fault = v.inVain(r)
		}
		switch {
		case fault != "":
			e.Why = fault
			for _, n := range r.with {
				if len(n.moving) == 0 && n.Claim.Deleting.IsZero() && !protected(n) && !v.expected(n) {
					e.Unused = append(e.Unused, n.Claim.Name)
				}
			}
			p.Undo = append(p.Undo, e)
			if !slices.ContainsFunc(r.claims, v.reports) { // else it is no failure, and the reports are about them as well
				v.fail(e.Claims, e.Reason, fault)
			}
		case missing == "":
			e.Why = fmt.Sprintf("%s, all its pods fit on nodes that are ready", r.mark.Reason)
			if v.fixed(e.Claims) {
				e.Why = fmt.Sprintf("%s, its replacement is ready", r.mark.Reason)
			}
			v.building[r.mark.ID] = true
			if e.Claims = v.turn(r, going); len(e.Claims) == 0 {
				p.Waiting = append(p.Waiting, strings.Join(namesOf(r.claims), ",")+": the budgets let no more nodes go before others are gone")
				continue
			}
			p.Finish = append(p.Finish, e)
		default:
			p.Waiting = append(p.Waiting, strings.Join(e.Claims, ",")+": "+missing)
			v.building[r.mark.ID] = true
		}
	}
}

// underWay groups marked claims and replacements by command, sorted by the first claim. Claims that are being deleted are past it.
func (v *view) underWay() []*running {
	byID := map[string]*running{}
	var out []*running
	for _, n := range v.nodes {
		m, marked := markOf(*n.Claim)
		if !marked || n.Deleting() {
			continue
		}
		if v.aside[n.Claim.Name] != nil { // it waits, and its replacements with it
			v.building[m.ID] = true
			continue
		}
		r := byID[m.ID]
		if r == nil {
			r = &running{mark: m}
			byID[m.ID] = r
			out = append(out, r)
		}
		r.claims = append(r.claims, n)
	}
	for _, n := range v.nodes {
		if r := byID[n.Claim.Annotations[AnnotationReplaces]]; r != nil {
			r.with = append(r.with, n)
		}
	}
	slices.SortFunc(out, func(a, b *running) int { return cmp.Compare(a.claims[0].Claim.Name, b.claims[0].Claim.Name) })
	return out
}

// failed says why a command cannot end well, or nothing.
func (v *view) failed(r *running) string {
	alive := 0
	for _, n := range r.with {
		if !n.Deleting() {
			alive++
		}
	}
	switch {
	case r.mark.ID == "":
		return "its mark cannot be read"
	case alive < r.mark.Replacements:
		return fmt.Sprintf("%d of %d replacements are gone", r.mark.Replacements-alive, r.mark.Replacements)
	case !v.now().Before(r.mark.Since.Add(v.rules().replaceTimeout)):
		return fmt.Sprintf("its pods had no room elsewhere within %s", v.rules().replaceTimeout)
	}
	if i := slices.IndexFunc(r.claims, v.reports); i >= 0 {
		return "disruption of " + r.claims[i].Claim.Name + " is only reported by now"
	}
	for _, n := range r.claims {
		if n.Node == nil || !tainted(n.Node) {
			return "node " + n.Name() + " was not tainted, or the taint was removed"
		}
		if protected(n) {
			return fmt.Sprintf("node %s carries %s meanwhile", n.Name(), v1.AnnotationDoNotDisrupt)
		}
		if r.mark.Reason == v1.DisruptionDrifted && n.Claim.TerminationGrace != nil {
			continue
		}
		for _, p := range n.pods {
			if p.Active() && p.Protected(v.now()) {
				return fmt.Sprintf("pod %s carries %s meanwhile", p.Key(), v1.AnnotationDoNotDisrupt)
			}
		}
	}
	return ""
}

// starting are the replacements that have an instance and are not ready.
func (r *running) starting() (out []string) {
	for _, n := range r.with {
		if n.Claim.ProviderID != "" && !n.Deleting() && !n.Initialized() && !n.Standby() {
			out = append(out, n.Claim.Name)
		}
	}
	return out
}

// protected reports whether a user asks that the node stays.
func protected(n *node) bool {
	return n.Node != nil && n.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true"
}

func tainted(n *cluster.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t cluster.Taint) bool { return t.Key == v1.TaintDisrupted })
}

// homeless returns a function that says which pod of a command still has no room on a node that is ready, or nothing.
func (v *view) homeless() func(*running) string {
	why := v.roomless()
	ready := map[string]bool{}
	for _, h := range v.s.Hosts() {
		ready[h.Name()] = h.Initialized() && h.Node.Ready || h.Standby()
	}
	for _, p := range v.s.Pods { // one that is still ending may be in the way
		if p.Terminating() && !p.Terminal() {
			delete(ready, p.NodeName)
		}
	}
	for _, x := range v.base.Existing {
		if !ready[x.Node] {
			why[x.Pod] = fmt.Sprintf("pod %s waits for node %s to be ready", x.Pod, x.Node)
		}
	}
	left := v.unscheduled(ready, why)
	v.leaning(why, left)
	return func(r *running) string {
		for _, p := range r.moving() {
			if w := why[p.Key()]; w != "" && left[p.Key()] {
				return w
			}
		}
		for _, n := range r.with {
			if !n.Initialized() && !n.Standby() {
				return "replacement " + n.Claim.Name + " is not ready"
			}
		}
		return ""
	}
}

// moving are the pods that need room before the command ends. Of static pools the number of nodes matters, and not where pods go.
func (r *running) moving() (out []*cluster.Pod) {
	for _, n := range r.claims {
		if !n.static() {
			out = append(out, n.moving...)
		}
	}
	return out
}

// roomless says, by pod, why it has no place on a node that exists or is on its way.
func (v *view) roomless() map[string]string {
	why := map[string]string{}
	for _, u := range v.base.Unplaced {
		why[u.Pod] = "pod " + u.Pod + " has no room elsewhere: " + u.Message()
	}
	for _, l := range v.base.Launches {
		for _, p := range l.Pods {
			why[p] = "pod " + p + " waits for a node to be launched"
		}
	}
	return why
}

// leaning gives a reason to those pods of left that have room only once others run where the plan has them, on nodes that are not ready.
func (v *view) leaning(why map[string]string, left map[string]bool) {
	var later, lean []cluster.Pod
	for _, p := range v.s.Pods {
		switch {
		case why[p.Key()] != "":
			later = append(later, p)
		case left[p.Key()] && len(p.Spread)+len(p.Affinity) > 0:
			lean = append(lean, p)
		}
	}
	for _, p := range lean {
		if i := slices.IndexFunc(later, func(other cluster.Pod) bool { return topology.Leans(p, other, v.s.Namespaces) }); i >= 0 {
			why[p.Key()] = fmt.Sprintf("pod %s has room elsewhere once another has: %s", p.Key(), why[later[i].Key()])
		}
	}
}

// unscheduled are the pods of commands under way that the scheduler would leave without a place on the nodes that are ready, were the
// nodes they run on gone. Pods that wait take their places before. Those that may not be on the new node that was made for them any more are
// given a reason.
func (v *view) unscheduled(ready map[string]bool, why map[string]string) map[string]bool {
	out := map[string]bool{}
	all := v.underWay()
	if len(all) == 0 {
		return out
	}
	unready := map[string]bool{}
	for _, h := range v.s.Hosts() {
		unready[h.Name()] = !ready[h.Name()]
	}
	planned := v.base.Places()
	b := newBoard(v.s, unready)
	var moving []*cluster.Pod
	made := map[string]bool{}
	for _, r := range all {
		moving = append(moving, movingOf(r.claims)...)
		for _, n := range r.with {
			made[n.Name()] = true
		}
	}
	slices.SortFunc(moving, byKey)
	mine := map[string]bool{}
	for _, p := range moving {
		mine[p.Key()] = true
	}
	for i := range v.s.Pods {
		p := &v.s.Pods[i]
		if x := b.byName[planned[p.Key()]]; x != nil && p.NodeName != x.name && !mine[p.Key()] {
			b.do(step{podCame, b.sort(p), x})
		}
	}
	for _, p := range b.astray(moving, planned) {
		if x := planned[p.Key()]; made[x] && why[p.Key()] == "" {
			why[p.Key()] = fmt.Sprintf("pod %s has no room elsewhere: its spread does not allow it on node %s any more, which was made for it", p.Key(), x)
		}
	}
	held := v.heldFor(b, mine)
	for _, p := range b.either(moving, func() []*cluster.Pod { return b.fill(moving, planned, held) }) {
		out[p.Key()] = true
	}
	return out
}

// heldFor are the sites that are held for some of the pods.
func (v *view) heldFor(b *board, pods map[string]bool) (out []heldSite) {
	for _, h := range v.s.Hosts() {
		x := b.byName[h.Name()]
		if x == nil || !h.Held() {
			continue
		}
		mine := slices.DeleteFunc(v.podsBy(pack.Nominees(h.Claim)), func(p *cluster.Pod) bool { return !pods[p.Key()] })
		out = append(out, heldSite{x, mine})
	}
	return out
}

// astray are the pods whose spread would be broken, were all where they are planned. The packer keeps pods on the nodes that were made for
// them, where they could be then; others may have come, or stayed, meanwhile. It moves nothing.
func (b *board) astray(pods []*cluster.Pod, planned map[string]string) (out []*cluster.Pod) {
	before := len(b.steps)
	for _, p := range pods {
		if x := b.byName[planned[p.Key()]]; x != nil {
			b.do(step{podCame, b.sort(p), x})
		}
	}
	for _, p := range pods {
		if x := b.byName[planned[p.Key()]]; x != nil && !b.rules(b.sort(p)).even(x, 0) {
			out = append(out, p)
		}
	}
	b.back(before)
	return out
}

func namesOf(list []*node) []string {
	var out []string
	for _, n := range list {
		out = append(out, n.Claim.Name)
	}
	slices.Sort(out)
	return out
}
