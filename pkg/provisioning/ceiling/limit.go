package ceiling

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// LimitPlan is the plan without the launches that the ceiling does not allow, which are in Held. Their pods are
// unplaced with the reason. Replacements of nodes that EC2 takes back come first, then pods by their priority, static
// pools, and buffers. A replacement that has to wait until the node is gone is stored before all others, and waits.
func LimitPlan(s cluster.Snapshot, p plan.Plan) plan.Plan {
	all := p.AllLaunches()
	if !isBounded(s) || len(all) == 0 {
		return p
	}
	h := newHeadroom(s)
	h.countClaims(s.Claims)
	h.countStarts(p.Starts())
	ranks := rankLaunches(s, p)
	order := make([]int, len(all))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(ranks[a].class, ranks[b].class), cmp.Compare(ranks[b].priority, ranks[a].priority))
	})
	why := map[int]string{}
	for done, i := range order {
		l, usd := h.withinPrice(all[i], len(order)-done)
		refused := h.refusal(usd, false)
		if refused != "" && ranks[i].class == replacements && h.refusal(usd, true) == "" {
			l.Waits, refused = refused, ""
		}
		if all[i] = l; refused != "" {
			why[i] = refused
			continue
		}
		h.take(usd)
	}
	return withoutHeld(p, all, why)
}

// withoutHeld is the plan with these launches, but for those that are held for a reason.
func withoutHeld(p plan.Plan, all []plan.Launch, why map[int]string) plan.Plan {
	forPods := len(p.Launches)
	p.Launches, p.Fixed, p.Unplaced = nil, nil, slices.Clone(p.Unplaced)
	type group struct{ pool, why string }
	held := map[group]int{}
	for i, l := range all {
		switch {
		case why[i] != "":
			held[group{l.Pool, why[i]}]++
			for _, pod := range l.Pods {
				p.Unplaced = append(p.Unplaced, plan.Unplaced{Pod: pod, Why: []string{why[i]}})
			}
		case i < forPods:
			p.Launches = append(p.Launches, l)
		default:
			p.Fixed = append(p.Fixed, l)
		}
	}
	slices.SortStableFunc(p.Unplaced, func(a, b plan.Unplaced) int { return strings.Compare(a.Pod, b.Pod) })
	for _, k := range slices.SortedFunc(maps.Keys(held), func(a, b group) int {
		return cmp.Or(strings.Compare(a.pool, b.pool), strings.Compare(a.why, b.why))
	}) {
		p.Held = append(p.Held, plan.Held{Pool: k.pool, Nodes: held[k], Why: k.why})
	}
	if len(held) > 0 {
		p.LowerBoundUSD = 0 // it is about the pods of all launches
	}
	return p
}

// What launches are for, the most urgent first.
const (
	replacements = iota // of nodes that EC2 takes back
	pendingPods
	staticPools
	bufferPods
	standby
)

type rank struct {
	class    int
	priority int32
}

// rankLaunches ranks all launches of the plan.
func rankLaunches(s cluster.Snapshot, p plan.Plan) []rank {
	leaving, static := map[string]bool{}, map[string]int{}
	for _, c := range s.Claims {
		if isInterrupted(c) {
			leaving[c.NodeName] = true
			static[c.Pool]++
		}
	}
	delete(leaving, "")
	pods := lists.Pointers(s.Pods, func(p *cluster.Pod) string { return p.Key() })
	out := lists.Of(p.Launches, func(l plan.Launch) rank { return rankOfPods(l, pods, leaving) })
	for _, l := range p.Fixed {
		r := rank{class: staticPools}
		switch {
		case l.ForStoppedCapacity():
			r.class = standby
		case static[l.Pool] > 0:
			r.class = replacements
			static[l.Pool]--
		}
		out = append(out, r)
	}
	return out
}

func rankOfPods(l plan.Launch, pods map[string]*cluster.Pod, leaving map[string]bool) rank {
	r := rank{class: bufferPods}
	for _, key := range l.Pods {
		pod := pods[key]
		if pod == nil || pod.Virtual {
			continue
		}
		class := pendingPods
		if leaving[pod.NodeName] {
			class = replacements
		}
		if r.class == bufferPods || pod.Priority > r.priority {
			r.priority = pod.Priority
		}
		r.class = min(r.class, class)
	}
	return r
}

// HeldClaims are the stored claims, by UID, whose launch has to wait, and why. The oldest are launched first. A claim
// whose instance runs, although the claim does not say so, is not held: its launch starts nothing. Nor is the claim of
// a batch launched without the others.
func HeldClaims(s cluster.Snapshot) map[string]string {
	if !isBounded(s) {
		return nil
	}
	h := newHeadroom(s)
	var waiting []cluster.Claim
	for _, c := range s.Claims {
		if c.Is(v1.ConditionLaunched) || !c.Deleting.IsZero() || hasInstance(c) {
			h.countClaims([]cluster.Claim{c})
		} else {
			waiting = append(waiting, c)
		}
	}
	slices.SortFunc(waiting, func(a, b cluster.Claim) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.Name, b.Name))
	})
	held, batches := map[string]string{}, map[string]string{}
	for _, c := range waiting {
		usd := h.chargeOfClaim(c)
		if why := h.refusal(usd, false); why == "" {
			h.take(usd)
		} else {
			held[c.UID] = why
			if b, shared := c.Batch(); shared {
				batches[b.ID] = why
			}
		}
	}
	for _, c := range waiting {
		if b, shared := c.Batch(); shared && batches[b.ID] != "" {
			held[c.UID] = batches[b.ID]
		}
	}
	return held
}

// hasInstance reports whether an instance runs for the claim, which does not have its id yet.
func hasInstance(c cluster.Claim) bool {
	return c.ProviderID != "" || c.Labels[v1.LabelInstance] != "" || c.Condition(v1.ConditionLaunched).Reason ==
		v1.ReasonInstanceStarted
}

// Refusal says why the ceiling does not allow all these launches, on top of those begun already, or nothing.
func Refusal(s cluster.Snapshot, begun, more []plan.Launch) string {
	if !isBounded(s) || len(more) == 0 {
		return ""
	}
	h := newHeadroom(s)
	h.countClaims(s.Claims)
	for i, l := range slices.Concat(begun, more) {
		usd := h.chargeOfLaunch(l)
		if why := h.refusal(usd, false); why != "" && i >= len(begun) {
			return why
		}
		h.take(usd)
	}
	return ""
}

// MostClaims returns the number of new claims that the snapshot allows a pass, as cluster.Settings.MaxClaims is: by its
// own bound and by how many nodes the ceiling allows. What nodes cost is asked about one by one.
func MostClaims(s cluster.Snapshot) int {
	most := s.Rules.MaxClaims
	if !isBounded(s) {
		return most
	}
	s.Rules.Ceiling.MillionthsUSD = 0
	h := newHeadroom(s)
	h.countClaims(s.Claims)
	c := s.Rules.Ceiling
	for _, left := range []int{bound(c.Nodes, h.nodes), bound(c.NodesPerMinute, h.recent), bound(s.Pace, 0)} {
		switch {
		case left < 0: // no bound
		case left == 0:
			return cluster.NoClaims
		case most == 0 || left < most:
			most = left
		}
	}
	return most
}

// WithinPace is as many of the claims named, whose instances are stopped, as the snapshot allows a pass to start: the
// first by name. They exist already, so that only how fast nodes come bounds them.
func WithinPace(s cluster.Snapshot, stopped map[string]bool) map[string]bool {
	if !isBounded(s) {
		return stopped
	}
	h := newHeadroom(s)
	h.countClaims(s.Claims)
	most := len(stopped)
	for _, left := range []int{bound(s.Rules.Ceiling.NodesPerMinute, h.recent), bound(s.Pace, 0)} {
		if left >= 0 {
			most = min(most, left)
		}
	}
	return lists.SetOf(slices.Sorted(maps.Keys(stopped))[:most])
}

// bound returns how much is left of a bound, or -1 where it is none.
func bound(most, have int) int {
	if most == 0 {
		return -1
	}
	return max(0, most-have)
}
