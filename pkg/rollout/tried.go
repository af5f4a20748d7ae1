package rollout

import (
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// oldNodes counts the claims of another revision that stay.
func (a *advance) oldNodes() int {
	return lists.Count(a.claims, func(c cluster.Claim) bool {
		return c.Deleting.IsZero() && a.revisionOf(c) != a.out.Status.Revision
	})
}

// updateTried brings the list of tried nodes up to date, and returns how many EC2 took before they proved anything. A
// claim counts from when an instance was launched for it. One that is gone counts as it was seen last, and a node that
// ended before it was initialized failed, unless EC2 announced that it takes it. One that was ending when the step
// began and was not there before is of an attempt that people ended.
func (a *advance) updateTried() (refunds int) {
	st := &a.out.Status
	before := map[string]string{}
	for _, t := range st.Tried {
		before[t.Name] = t.State
	}
	live := map[string]bool{}
	for _, c := range a.claims {
		if a.revisionOf(c) != st.Revision || c.ProviderID == "" && before[c.Name] == "" {
			continue
		}
		live[c.Name] = true
		switch was := before[c.Name]; {
		case was == "" && !c.Deleting.IsZero() && c.Deleting.Before(st.StepStarted):
		case was != "" && was != cluster.TriedStarting:
		case c.Is(api.ConditionInitialized):
			before[c.Name] = cluster.TriedInitialized
		case c.Deleting.IsZero():
			before[c.Name] = cluster.TriedStarting
		case isTakenByEC2(c):
			before[c.Name] = cluster.TriedLost
		default:
			before[c.Name] = cluster.TriedFailed
		}
	}
	st.Tried = nil
	for name, state := range before {
		if state == cluster.TriedStarting && !live[name] {
			state = cluster.TriedFailed
		}
		if state == cluster.TriedLost {
			refunds++
		}
		st.Tried = append(st.Tried, cluster.TriedNode{Name: name, State: state})
	}
	slices.SortFunc(st.Tried, func(x, y cluster.TriedNode) int { return strings.Compare(x.Name, y.Name) })
	st.Tried = st.Tried[:min(len(st.Tried), mostTold)]
	return refunds
}

// isTakenByEC2 reports whether EC2 announced that it takes the instance of the claim that is being deleted. An instance
// that shuts itself down is no such one: its revision may be why.
func isTakenByEC2(c cluster.Claim) bool {
	switch interruption.Kind(c.Annotations[api.AnnotationDeletionReason]) {
	case interruption.Spot, interruption.Reservation, interruption.Scheduled:
		return true
	}
	return false
}

// count counts nodes for people.
func (a *advance) count() {
	st := &a.out.Status
	st.NewNodes = lists.Count(a.claims, func(c cluster.Claim) bool { return a.revisionOf(c) == st.Revision })
	st.OldNodes = len(a.claims) - st.NewNodes
}
