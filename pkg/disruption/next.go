package disruption

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/scheduling/binpack"
)

// Next decides what to disrupt, with what classes may launch.
func Next(s cluster.Snapshot, m Memory, sells binpack.Offerings) (Plan, Memory) {
	return NextFrom(s, m, sells, nil)
}

// NextFrom is Next with what earlier passes found out, which saves time and changes no decision.
// sells belongs to c. Nodes, pods and NodePools about which the decision fails are left out; the others are decided
// about.
func NextFrom(s cluster.Snapshot, m Memory, sells binpack.Offerings, c *Cache) (Plan, Memory) {
	type next struct {
		Plan
		Memory
	}
	stock, broken := c, false
	found := faultisolation.Decide(s, m.Aside, faultisolation.Decision[next]{Claims: true, Tries: maxRepeats,
		Take: func(s cluster.Snapshot) (n next) {
			if broken && c != nil { // what was being found out when it failed may be wrong
				stock, sells = nil, binpack.ResolveOfferings(s)
			}
			broken = true
			n.Plan, n.Memory = decidePlan(newState(s, m, sells, stock), m)
			broken = false
			return n
		}})
	if stock != c || broken && c != nil {
		*c = Cache{}
	}
	p, after := found.Out.Plan, found.Out.Memory
	if found.Failed {
		after = m
	}
	p.Faults, after.Aside = found.Faults, found.Aside
	return p, after
}

// Stages of the decision about a node, as a follower is told of them.
const (
	stageQuestion = "question" // the packer is asked what if it were gone
	stageCommand  = "command"  // a command about it is made
	stageProgress = "progress" // a command about it is under way
)

func (st *State) tellStage(stage string, set []*stateNode) {
	for _, n := range set {
		st.snapshot.TellStage(stage, n.Claim.Name)
	}
}
