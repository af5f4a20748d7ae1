// Package pass is the decision of one pass of provision as a whole: which nodes that may go are emptied first, where the pods go, and
// which new nodes are kept for them. The function, the command line and replays ask it alike.
package pass

import (
	"joiner/pkg/cluster"
	"joiner/pkg/hold"
	"joiner/pkg/interrupt"
	"joiner/pkg/pack"
	"joiner/pkg/plan"
)

// Outcome is what a pass decides.
type Outcome struct {
	Going []interrupt.Going // nodes to be left, as far as budgets let them go now
	Plan  plan.Plan
}

// Decide says what a pass does about the snapshot.
func Decide(s cluster.Snapshot) Outcome {
	going := interrupt.Admit(s)
	return Outcome{Going: going, Plan: hold.Mark(s, pack.Pods(interrupt.Empty(s, going)))}
}
