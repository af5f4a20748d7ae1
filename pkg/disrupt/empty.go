package disrupt

import (
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/plan"
)

// settled is until when consolidation leaves the node alone.
func (n *node) settled() (until time.Time, ok bool) {
	t, err := time.Parse(time.RFC3339, n.Claim.Annotations[AnnotationSettled])
	return t, err == nil
}

// findEmpty finds the nodes on which nothing needs room elsewhere (spec core.md §6.4, Emptiness).
func (v *view) findEmpty(*Memory) (Command, bool) {
	var set []*node
	for _, n := range v.nodes {
		if v.open(n, v1.DisruptionEmpty) {
			set = append(set, n)
		}
	}
	return v.remove(v.within(set, v1.DisruptionEmpty), v1.DisruptionEmpty)
}

// remove is the command by which the nodes go without replacement.
func (v *view) remove(set []*node, reason v1.DisruptionReason) (Command, bool) {
	if len(set) == 0 {
		return Command{}, false
	}
	return v.command(set, reason, nil), true
}

// command is the command about the nodes with its replacements.
func (v *view) command(set []*node, reason v1.DisruptionReason, launches []plan.Launch) Command {
	v.planted(stageCommand, set)
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
	c.ID = idOf(reason, c.Claims, v.now())
	return c
}
