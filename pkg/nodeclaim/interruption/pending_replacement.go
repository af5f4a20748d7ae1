package interruption

import (
	"cmp"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// PendingReplacement is a node that is to be left, and whether it may be now.
type PendingReplacement struct {
	Claim string         // name of the NodeClaim
	Node  string         // empty while there is none
	Leave ReplaceRequest // why and until when; never zero
	Wait  string         // why not now; empty if it may go as soon as its pods have room on nodes that are ready
}

// AdmitWithinBudgets says of every claim that is to be left whether it may be now, the most urgent first. A node that
// EC2 disturbs soon may go always. The others go like drifted ones: within the budgets of their pool, and not while a
// pod or the node itself must not be disrupted. Claims in noRoom, with the reasons of BlockedByCapacity, wait and leave
// the budgets to others.
func AdmitWithinBudgets(s cluster.Snapshot, noRoom map[string]string) []PendingReplacement {
	var out []PendingReplacement
	obstacles := s.Obstacles()
	var on map[string][]*cluster.Pod // once asked for: few passes have nodes to leave
	for _, node := range s.StateNodes() {
		if node.Claim == nil || !node.Claim.Deleting.IsZero() {
			continue
		}
		l := LeaveOf(*node.Claim)
		if !l.StillHolds(s.Now) {
			continue
		}
		g := PendingReplacement{Claim: node.Claim.Name, Leave: l}
		if node.Node != nil {
			g.Node = node.Node.Name
		}
		if !l.isDue(s.Now) {
			if on == nil {
				on = s.PodsByNode()
			}
			g.Wait = cmp.Or(blockedReason(node, on, obstacles), noRoom[g.Claim])
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b PendingReplacement) int {
		return cmp.Or(lists.TrueFirst(a.Leave.isDue(s.Now), b.Leave.isDue(s.Now)),
			a.Leave.Until.Compare(b.Leave.Until), a.Leave.Since.Compare(b.Leave.Since), cmp.Compare(a.Claim, b.Claim))
	})
	spendBudgets(s, out)
	return out
}

// spendBudgets lets the first ones go that budgets leave room for. What must go counts too, but is not refused.
func spendBudgets(s cluster.Snapshot, going []PendingReplacement) {
	pools, left := map[string]string{}, map[string]int{}
	for _, c := range s.Claims {
		pools[c.Name] = c.Pool
	}
	for _, p := range s.Pools {
		n, err := budgets.RemainingDisruptions(s, p, v1.DisruptionDrifted)
		if left[p.Name] = n; err != nil {
			left[p.Name] = 0
		}
	}
	for i, g := range going {
		pool := pools[g.Claim]
		if g.Wait != "" {
			continue
		}
		if left[pool] <= 0 && !g.Leave.isDue(s.Now) {
			going[i].Wait = "the budgets of NodePool " + pool + " allow no more nodes now"
			continue
		}
		left[pool]--
	}
}

// blockedReason says who must not be disrupted, or nothing.
func blockedReason(node cluster.StateNode, on map[string][]*cluster.Pod, obstacles cluster.Obstacles) string {
	if node.Node == nil {
		return ""
	}
	if node.Node.Annotations[v1.AnnotationDoNotDisrupt] == "true" ||
		node.Claim.Annotations[v1.AnnotationDoNotDisrupt] == "true" {
		return "the node is annotated " + v1.AnnotationDoNotDisrupt
	}
	pods := slices.Clone(on[node.Node.Name])
	slices.SortFunc(pods, func(a, b *cluster.Pod) int { return cmp.Compare(a.Key(), b.Key()) })
	_, why := obstacles.Of(pods)
	return why
}

// WithoutAdmitted is the snapshot in which the nodes that may go are marked for deletion, so that packing finds room
// for their pods elsewhere. The snapshot given is not changed.
func WithoutAdmitted(s cluster.Snapshot, going []PendingReplacement) cluster.Snapshot {
	nodes := slices.Clone(s.Nodes)
	for i, n := range nodes {
		if slices.ContainsFunc(going, func(g PendingReplacement) bool { return g.Node == n.Name && g.Wait == "" }) {
			nodes[i].Taints = append(slices.Clip(n.Taints), cluster.Taint{Key: v1.TaintDisrupted, Effect: "NoSchedule"})
		}
	}
	s.Nodes = nodes
	return s
}

// ClaimsForReplacement returns the number of nodes that a pass may make, 0 for any number: at least as many as the
// first node that may go has pods. A node whose pods each need a new one would stay for ever otherwise.
func ClaimsForReplacement(s cluster.Snapshot, going []PendingReplacement) int {
	first := slices.IndexFunc(going, func(g PendingReplacement) bool { return g.Wait == "" && g.Node != "" })
	if first < 0 || s.Rules.MaxClaims == 0 {
		return s.Rules.MaxClaims
	}
	return max(s.Rules.MaxClaims, len(podsOn(s.PodsByNode(), going[first].Node)))
}

// BlockedByCapacity says, by claim, why nodes that may go, and need not at once, cannot be emptied: a pod of theirs has
// no room on any node, neither one that exists nor one that can be made. The plan packs the pods of WithoutAdmitted.
func BlockedByCapacity(s cluster.Snapshot, going []PendingReplacement, p plan.Plan) map[string]string {
	out := map[string]string{}
	if len(going) == 0 || len(p.Unplaced) == 0 {
		return out
	}
	why := map[string]string{}
	for _, u := range p.Unplaced {
		why[u.Pod] = "pod " + u.Pod + " has no room elsewhere: " + u.Message()
	}
	on := s.PodsByNode()
	for _, g := range going {
		if g.Node == "" || g.Wait != "" || g.Leave.isDue(s.Now) {
			continue
		}
		for _, pod := range podsOn(on, g.Node) {
			if w := why[pod.Key()]; w != "" && (out[g.Claim] == "" || w < out[g.Claim]) {
				out[g.Claim] = w
			}
		}
	}
	return out
}

// drainDeadline is by when the drain must end: before EC2's date, if that is still to come.
func drainDeadline(s cluster.Snapshot, g PendingReplacement) time.Time {
	if g.Leave.Cause != Scheduled || !g.Leave.Until.After(s.Now) {
		return time.Time{}
	}
	for _, c := range s.Claims {
		if c.Name == g.Claim {
			return earlierDeadline(c, g.Leave.Until.Add(-safety), s.Now)
		}
	}
	return time.Time{}
}

// WithoutRunning is the plan without the pods that have no room elsewhere but run where they are: on a node that waits
// to be left.
func WithoutRunning(s cluster.Snapshot, going []PendingReplacement, p plan.Plan) plan.Plan {
	if len(going) == 0 || len(p.Unplaced) == 0 {
		return p
	}
	home, on := map[string]bool{}, s.PodsByNode()
	for _, g := range going {
		for _, pod := range on[g.Node] {
			home[pod.Key()] = true
		}
	}
	p.Unplaced = slices.DeleteFunc(slices.Clone(p.Unplaced), func(u plan.Unplaced) bool { return home[u.Pod] })
	return p
}
