package disrupt

import (
	"joiner/pkg/cluster"
	"joiner/pkg/isolate"
	"joiner/pkg/pack"
)

// Next decides what to disrupt, with what classes may launch.
func Next(s cluster.Snapshot, m Memory, sells pack.Market) (Plan, Memory) {
	return NextFrom(s, m, sells, nil)
}

// NextFrom is Next with what the passes before found out about what is sold, which saves time and changes no decision. sells is the depot's.
// Nodes, pods and NodePools about which the decision fails are left out: the others are decided about.
func NextFrom(s cluster.Snapshot, m Memory, sells pack.Market, d *pack.Depot) (Plan, Memory) {
	type next struct {
		Plan
		Memory
	}
	stock, broken := d, false
	found := isolate.Decide(s, m.Aside, isolate.Decision[next]{Claims: true, Tries: mostTries, Take: func(s cluster.Snapshot) (n next) {
		if broken && d != nil { // what was being found out when it failed may be wrong
			stock, sells = nil, pack.Sells(s)
		}
		broken = true
		n.Plan, n.Memory = decide(look(s, m, sells, stock), m)
		broken = false
		return n
	}})
	if stock != d || broken && d != nil {
		*d = pack.Depot{}
	}
	p, after := found.Out.Plan, found.Out.Memory
	if found.Failed {
		after = m
	}
	p.Faults, after.Aside = found.Faults, found.Aside
	return p, after
}

// mostTries bounds how often a pass is decided anew in search of what the decision fails about. A pass takes seconds in a large cluster, and
// the next one goes on.
const mostTries = 24

// Where tests let the decision fail about a node.
const (
	stageQuestion = "question" // the packer is asked what if it were gone
	stageCommand  = "command"  // a command about it is made
	stageProgress = "progress" // a command about it is under way
)

func (v *view) planted(stage string, set []*node) {
	for _, n := range set {
		v.s.Rules.Plant.Hit(stage, n.Claim.Name)
	}
}
