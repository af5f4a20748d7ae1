package disruption

import (
	v1 "joiner/pkg/api/v1"
)

// Steps that budgets allow cost most of the moves: pods come to nodes that go in a later step, and what few nodes are replaced by is
// replaced again. So a command may be larger than the budgets, where a setting says so, if no other node of the pool is out of service
// when it begins. All its new nodes come first; then its nodes go in waves, each as large as the budgets allow. Those whose turn has
// not come are tainted already, so that no pod of an earlier wave moves to one of them.

// going counts the nodes of each pool that are out of service, but for those that only wait for their wave.
func (v *state) going() map[string]int {
	out := map[string]int{}
	for _, n := range v.nodes {
		if n.Pool() == "" || !n.Initialized() || n.Claim.Is(v1.ConditionInstanceTerminating) {
			continue
		}
		m, marked := markOf(*n.Claim)
		waits := marked && m.Reason == v1.DisruptionUnderutilized && !n.Deleting()
		if n.MarkedForDeletion() && !waits || !n.Node.Ready {
			out[n.Pool()]++
		}
	}
	return out
}

// turn are the claims of the command that go now, by name: all of them but where it has more than budgets let go at a time.
// It counts them among those that are going.
func (v *state) turn(r *runningCommand, going map[string]int) []string {
	if v.rules().waves == 1 || r.mark.Reason != v1.DisruptionUnderutilized {
		return namesOf(r.claims)
	}
	var now []*stateNode
	for _, n := range r.claims {
		if going[n.Pool()] < v.wave[n.Pool()] {
			going[n.Pool()]++
			now = append(now, n)
		}
	}
	return namesOf(now)
}

// overlap is for how many hours the new nodes of a command run beside its old ones, counted in full: nodes that go in waves leave one wave
// after the other, so that in the mean half of them are there.
func (v *state) overlap(set []*stateNode) float64 {
	return sideBySide * float64(1+v.wavesOf(set)) / 2
}

// wavesOf is in how many waves the nodes go.
func (v *state) wavesOf(set []*stateNode) int {
	most := 1
	if v.rules().waves == 1 {
		return most
	}
	of := map[string]int{}
	for _, n := range set {
		of[n.pool.Name]++
		if each := v.wave[n.pool.Name]; each > 0 {
			most = max(most, (of[n.pool.Name]+each-1)/each)
		}
	}
	return most
}

// named are the nodes of the claims.
func (v *state) named(claims []string) []*stateNode {
	out := make([]*stateNode, len(claims))
	for i, name := range claims {
		out[i] = v.byClaim[name]
	}
	return out
}
