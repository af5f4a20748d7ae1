package disruption

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// Command is one disruption: nodes that go together, and what must be ready before.
type Command struct {
	ID       string              // names the command on the objects it touches
	Reason   v1.DisruptionReason // why the nodes go, all for the same
	Claims   []string            // NodeClaims that go, sorted
	Launches []plan.Launch       // replacements
	SavesUSD float64             // per hour; below zero where drift makes a node dearer
	Moves    int                 // pods that will be evicted
}

// String says the command in one line.
func (c Command) String() string {
	out := fmt.Sprintf("%s: %s", c.Reason, strings.Join(c.Claims, ","))
	switch len(c.Launches) {
	case 0:
		out += " without replacement"
	default:
		with := lists.Of(c.Launches, func(l plan.Launch) string { return l.Choice.String() })
		out += " for " + strings.Join(with, ", ")
	}
	out += fmt.Sprintf(", saves %.4f USD/h", c.SavesUSD)
	return fmt.Sprintf("%s, moves %d pods", out, c.Moves)
}

// newCommand returns the command that replaces the nodes by the launches.
func (st *State) newCommand(set []*stateNode, reason v1.DisruptionReason, launches []plan.Launch) Command {
	st.tellStage(stageCommand, set)
	c := Command{Reason: reason, Launches: launches}
	for _, n := range set {
		c.Claims = append(c.Claims, n.Claim.Name)
		c.SavesUSD += n.price
		c.Moves += len(n.moving)
	}
	slices.Sort(c.Claims)
	for _, l := range launches {
		c.SavesUSD -= l.Choice.Price
	}
	c.ID = commandID(reason, c.Claims, st.now())
	return c
}
