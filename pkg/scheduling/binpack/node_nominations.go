package binpack

import (
	"slices"
	"strings"
	"time"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

const (
	// bindsWithin is how long the scheduler may take for the pods of a node that has become ready for them.
	bindsWithin = 10 * time.Second
	// refusedAfter is how long after a node became ready the scheduler has had its say about the pods planned for it.
	refusedAfter = 15 * time.Second
	// mostNominations is how many claims one pass writes new pods on.
	mostNominations = 100
)

// Nomination is a claim on its way with the pods that its node is to remember.
type Nomination struct {
	Claim cluster.Claim
	Pods  []string // namespace/name, sorted as in a launch
}

// ListNominations lists the claims on their way that the plan puts pods on which they do not know of, at most 100 of
// them, sorted by the names of their hosts. Until their nodes can take pods nothing else says where those are meant to
// go, and a pass that comes again might choose another order and launch a node more.
func ListNominations(s cluster.Snapshot, p plan.Plan) []Nomination {
	pods := map[string][]string{} // by host
	for _, e := range p.Existing {
		pods[e.Node] = append(pods[e.Node], e.Pod)
	}
	var out []Nomination
	for _, h := range s.StateNodes() {
		list := pods[h.Name()]
		// who a held node is for stands on its claim
		if len(list) == 0 || h.AwaitsNominated() || !isAwaitingPods(h, s.Now) {
			continue
		}
		known := NomineesOf(h.Claim)
		if !slices.ContainsFunc(list, func(pod string) bool { return !slices.Contains(known, pod) }) {
			continue
		}
		if len(out) == mostNominations {
			break
		}
		slices.SortFunc(list, compareNatural)
		out = append(out, Nomination{Claim: *h.Claim, Pods: list})
	}
	return out
}

// Annotations are those that make the claim remember.
func (n Nomination) Annotations() map[string]string {
	return map[string]string{api.AnnotationNominatedPods: strings.Join(n.Pods, ",")}
}

// NomineesOf are the keys of the pods planned for the claim's node.
func NomineesOf(c *cluster.Claim) []string {
	if c.Annotations[api.AnnotationNominatedPods] == "" {
		return nil
	}
	return strings.Split(c.Annotations[api.AnnotationNominatedPods], ",")
}

// isAwaitingPods reports whether the host has a claim, and the scheduler has not had the time to put the pods planned
// for it onto its node. Those that it did not put there later are packed by what is true now: a rule may have come to
// keep them away. A held node is not initialized while it waits for them.
func isAwaitingPods(h cluster.StateNode, now time.Time) bool {
	if h.Claim == nil || h.MarkedForDeletion() || h.LostNode(now) {
		return false
	}
	if h.AwaitsNominated() {
		return true
	}
	if n := h.Node; n != nil && n.Ready && !n.ReadySince.IsZero() && now.Sub(n.ReadySince) >= refusedAfter &&
		!h.AwaitsAgents() {
		return false
	}
	k := h.Claim.Condition(api.ConditionInitialized)
	return !h.Initialized() || k.Status == "True" && now.Before(k.Since.Add(bindsWithin))
}
