package main

import (
	"fmt"

	"joiner.sh/infra/lab/bench/world"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning"
)

// freshPlan returns the USD per hour of the cluster if all pods that may move were pending at once: the nodes that must
// stay, with the room that they have then, and the nodes that Joiner's packer buys beside them. Nodes must stay when a
// pod on them may not be evicted. It is what consolidation works towards; it is not proven that nothing is cheaper.
func freshPlan(w *world.World) (float64, error) {
	held := map[string]bool{}
	for _, p := range w.Pods {
		if p.Held {
			held[p.Object.Namespace+"/"+p.Object.Name] = true
		}
	}
	s := newJoiner(w, whatIf{}).readSnapshot()
	stays := map[string]bool{}
	for i := range s.Pods {
		p := &s.Pods[i]
		if held[p.Key()] {
			stays[p.NodeName] = true
			continue
		}
		p.NodeName, p.Unscheduled, p.Phase = "", true, "Pending"
	}
	var nodes []cluster.Node
	var claims []cluster.Claim
	usd := 0.0
	for i, n := range s.Nodes {
		if stays[n.Name] {
			nodes, claims = append(nodes, n), append(claims, s.Claims[i])
			usd += w.Nodes[n.Name].Price
		}
	}
	s.Nodes, s.Claims = nodes, claims
	plan := provisioning.Decide(s).Plan
	if n := len(plan.Unplaced); n > 0 {
		return 0, fmt.Errorf("fresh plan: %d pods find no place, first %s: %s", n, plan.Unplaced[0].Pod,
			plan.Unplaced[0].Message())
	}
	for _, l := range plan.Launches {
		price, ok := w.PriceOf(l.Choice.OfferingKey)
		if !ok {
			return 0, fmt.Errorf("fresh plan: nobody sells %s", l.Choice.OfferingKey)
		}
		usd += price
	}
	return usd, nil
}
