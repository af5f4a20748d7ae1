package lifecycle

import (
	"cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
)

// Reasons for which a claim is deleted that count against its pool.
const (
	launchTimeout       = "launch_timeout"
	registrationTimeout = "registration_timeout"
)

// countPoolNodes says what the nodes of each pool have, where the pool says something else. Nodes that are on their way
// out do not count, nor does a claim without an instance.
func (st state) countPoolNodes() []plan.Action {
	has := map[string]resources.List{}
	for _, node := range st.s.StateNodes() {
		if node.MarkedForDeletion() || node.Claim != nil &&
			(node.Claim.ProviderID == "" || node.Claim.Is(v1.ConditionInstanceTerminating)) {
			continue
		}
		has[node.Pool()] = has[node.Pool()].Add(node.Capacity()).Add(resources.List{}.With(string(v1.LimitNodes), 1))
	}
	var out []plan.Action
	for _, p := range st.s.Pools {
		if p.Uncounted || !has[p.Name].Sub(p.Counted).IsZero() {
			out = append(out, plan.Action{Do: plan.CountPool, Pool: p.Name, Has: has[p.Name]})
		}
	}
	return out
}

// registrationOutcome returns how the registration of a node for the claim ended, if it ends with these actions. A pool
// is told of its own claims only.
func (st state) registrationOutcome(c cluster.Claim, actions []plan.Action) (o cluster.Registration, ended bool) {
	if p, ok := st.s.PoolOf(c.Pool); !ok || p.UID == "" || p.UID != c.PoolUID {
		return cluster.Registration{}, false
	}
	for _, a := range actions {
		switch {
		case a.Do == plan.RegisterNode && !c.Is(v1.ConditionRegistered):
			return cluster.Registration{ClaimUID: c.UID, OK: true}, true
		case a.Do == plan.DeleteClaim && a.Reason == registrationTimeout:
			return cluster.Registration{ClaimUID: c.UID, Reason: v1.ReasonRegistrationFailed, Message: a.Why}, true
		case a.Do == plan.DeleteClaim && a.Reason == launchFailed:
			i, _ := st.endedEarly(c)
			reason, message := explainEnd(i.StateReason)
			return cluster.Registration{ClaimUID: c.UID, Reason: reason, Message: message}, true
		case a.Do == plan.DeleteClaim && a.Reason == launchTimeout:
			k := c.Condition(v1.ConditionLaunched)
			return cluster.Registration{ClaimUID: c.UID, Reason: cmp.Or(k.Reason, v1.ReasonLaunchFailed),
				Message: cmp.Or(k.Message, a.Why)}, true
		}
	}
	return cluster.Registration{}, false
}
