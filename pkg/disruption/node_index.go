package disruption

import (
	"slices"
	"strings"

	"joiner.sh/pkg/disruption/simulator"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// nodeIndex finds our nodes.
type nodeIndex struct {
	nodes   []*stateNode // sorted by claim
	byClaim map[string]*stateNode
}

// newNodeIndex finds our nodes and the pods on them.
func newNodeIndex(s cluster.Snapshot) nodeIndex {
	x := nodeIndex{byClaim: map[string]*stateNode{}}
	on := s.PodsByNode()
	for _, node := range s.StateNodes() {
		if node.Claim == nil {
			continue
		}
		n := &stateNode{StateNode: node}
		if node.Node != nil {
			n.pods = on[node.Node.Name]
			slices.SortFunc(n.pods, simulator.ByKey)
		}
		x.nodes = append(x.nodes, n)
		x.byClaim[n.Claim.Name] = n
	}
	slices.SortFunc(x.nodes, func(a, b *stateNode) int { return strings.Compare(a.Claim.Name, b.Claim.Name) })
	return x
}

// nodesOfClaims returns the nodes of the claims.
func (x nodeIndex) nodesOfClaims(claims []string) []*stateNode {
	out := make([]*stateNode, len(claims))
	for i, name := range claims {
		out[i] = x.byClaim[name]
	}
	return out
}

// nodeNames returns the names of the nodes that ok accepts, as far as they have come.
func (x nodeIndex) nodeNames(ok func(*stateNode) bool) map[string]bool {
	there := lists.Where(x.nodes, func(n *stateNode) bool { return n.Node != nil && ok(n) })
	return lists.Set(there, func(n *stateNode) string { return n.Node.Name })
}

// totalPrice returns what all nodes cost, USD per hour.
func (x nodeIndex) totalPrice() (usd float64) {
	for _, n := range x.nodes {
		usd += n.price
	}
	return usd
}

// isStaticCommand reports whether the command is about nodes of a static pool.
func (x nodeIndex) isStaticCommand(claims []string) bool {
	return slices.ContainsFunc(claims, func(name string) bool {
		return x.byClaim[name] != nil && x.byClaim[name].inStaticPool()
	})
}

// movesPods reports whether pods need room elsewhere when the command is begun. Those of static pools have it on the
// replacement.
func (x nodeIndex) movesPods(c Command) bool {
	return c.Moves+len(c.Launches) > 0 && !x.isStaticCommand(c.Claims)
}
