package binpack

import (
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/podclass"
)

const (

	// mostNominations caps the claims on which one pass records the pods nominated to them.
	mostNominations = 100
)

// Nomination is a claim on its way with the pods that its node is to remember.
type Nomination struct {
	Claim cluster.Claim // not in service yet; it does not record all of Pods
	Pods  []string      // namespace/name, sorted as in a launch
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
	for _, node := range s.StateNodes() {
		list := pods[node.Name()]
		// who a held node is for stands on its claim
		if len(list) == 0 || node.AwaitsNominated() || !node.IsAwaitingPods(s.Now) {
			continue
		}
		known := node.Claim.NominatedPods()
		if !slices.ContainsFunc(list, func(pod string) bool { return !slices.Contains(known, pod) }) {
			continue
		}
		if len(out) == mostNominations {
			break
		}
		slices.SortFunc(list, podclass.CompareNatural)
		out = append(out, Nomination{Claim: *node.Claim, Pods: list})
	}
	return out
}

// Annotations returns the annotations that record the nomination on the claim.
func (n Nomination) Annotations() map[string]string {
	return map[string]string{api.AnnotationNominatedPods: strings.Join(n.Pods, ",")}
}
