package whatif

import (
	"fmt"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/scheduling/binpack"
)

// ForNode finds what would let the node of the NodeClaim go. Nothing is asked where it goes as it is.
func ForNode(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, claim string, most Limits) Answer {
	if _, ok := nodeOf(s, claim); !ok || most.Work < 0 {
		return Answer{}
	}
	d := &disruption.Cache{}
	q := newQuestion(s, most, func(s cluster.Snapshot) (Outcome, bool) { return goes(s, m, sells, d, claim) })
	if _, ok := q.answer(s); ok {
		return Answer{}
	}
	return q.search(nodeFamilies(s, claim))
}

// nodeOf is the node of a NodeClaim that has one and is not leaving.
func nodeOf(s cluster.Snapshot, claim string) (cluster.StateNode, bool) {
	for _, h := range s.StateNodes() {
		if h.Claim != nil && h.Node != nil && h.Claim.Name == claim && !h.MarkedForDeletion() {
			return h, true
		}
	}
	return cluster.StateNode{}, false
}

// nodeFamilies are all edits that could let the node go.
func nodeFamilies(s cluster.Snapshot, claim string) []family {
	h, _ := nodeOf(s, claim)
	on := podsOn(s, h.Name())
	all := protectionFamilies(s, h, on)
	for i, p := range s.Pools {
		if p.Name == h.Pool() {
			all = append(all, pool{p, i}.disruptionFamilies()...)
		}
	}
	all = append(all, paybackFamily(s.Rules))
	for i, p := range s.Pools {
		if !p.Deleting && !p.Static {
			all = append(all, pool{p, i}.families(cluster.Pod{})...)
		}
	}
	for _, p := range on {
		if p.Reschedulable() {
			all = append(all, p.families(s)...)
		}
	}
	return all
}

// goes is what becomes of the node, if disruption may take it.
func goes(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, d *disruption.Cache, claim string) (
	out Outcome, ok bool) {
	for _, r := range staticcapacity.SurplusNodes(s) {
		if r.Claim == claim {
			return Outcome{Brings: "its NodePool has one node less"}, true
		}
	}
	c, _ := disruption.AskAbout(s, m, sells, d, claim)
	if len(c.Claims) == 0 {
		return out, false
	}
	out.Brings, out.AddsUSD = "it goes without replacement", -c.SavesUSD
	for i, l := range c.Launches {
		if out.Brings += ", " + l.Choice.Offer.String(); i == 0 {
			out.Brings, out.landing = "it goes for "+l.Choice.Offer.String(), landingOf(s, sells, l)
		}
	}
	out.Brings += fmt.Sprintf(", which saves %.2f USD a month", c.SavesUSD*instancetypes.HoursPerMonth)
	return out, true
}

// podsOn are the pods on the node, those together that the same object makes.
func podsOn(s cluster.Snapshot, node string) []pods {
	return podsAlike(s, func(p *cluster.Pod) bool {
		return p.NodeName == node && p.Active() && p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode
	})
}
