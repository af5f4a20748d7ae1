package lifecycle

import (
	"fmt"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

const (
	leastPercent      = 90               // of what the claim promises, that a node must have
	inconsistentEvery = 10 * time.Minute // the event that says that it has less
)

// checkConsistency says on an initialized claim whether its node has what the claim promises.
func (r registrar) checkConsistency(c cluster.Claim) []plan.Action {
	nodes := r.nodes[c.ProviderID]
	if len(nodes) != 1 {
		return nil
	}
	k := compareWithClaim(c, nodes[0])
	out := r.writeCondition(c, k)
	if k.Status == "False" {
		out = append(out, plan.Action{Do: plan.Tell, Claim: c.Name, Warning: true, Reason: "FailedConsistencyCheck",
			Why: k.Message, Every: inconsistentEvery})
	}
	return out
}

// compareWithClaim compares only what the pods of the claim asked for: the rest of an estimate may well be off.
func compareWithClaim(c cluster.Claim, n cluster.Node) cluster.Condition {
	var short []string
	for _, name := range c.Requests.Names() {
		promised, has := c.Capacity.Get(name), n.Capacity.Get(name)
		if has*100 < promised*leastPercent {
			short = append(short, fmt.Sprintf("%s is %d and was to be %d", name, has, promised))
		}
	}
	if len(short) > 0 {
		return cluster.Condition{Type: v1.ConditionConsistentStateFound, Status: "False",
			Reason: v1.ReasonConsistencyCheckFailed,
			Message: fmt.Sprintf("the node has less than %d %% of what was expected: %s", leastPercent,
				strings.Join(short, ", "))}
	}
	return cluster.Condition{Type: v1.ConditionConsistentStateFound, Status: "True",
		Reason: v1.ConditionConsistentStateFound}
}
