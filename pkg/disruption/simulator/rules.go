package simulator

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/topology"
)

// addNodeDomain records the domain of the node that came last.
func (c *podCounter) addNodeDomain(n *Node) {
	value, ok := n.labels[c.key]
	if c.key == corev1.LabelHostname {
		value, ok = n.name, true
	}
	if !ok || c.filter != nil && !nodeAdmits(n, c.filter) {
		c.at = append(c.at, -1)
		return
	}
	d, known := c.domains[value]
	if !known {
		d = len(c.domains)
		c.domains[value] = d
		c.count, c.anti, c.nodes = append(c.count, 0), append(c.anti, 0), append(c.nodes, 0)
	}
	c.at = append(c.at, d)
	c.nodes[d]++
}

// removeNodeDomain forgets the node that came last.
func (c *podCounter) removeNodeDomain(n *Node) {
	c.countNodes(n, -1)
	c.at = c.at[:n.index]
}

func (c *podCounter) countNodes(node *Node, n int) {
	if d := c.at[node.index]; d >= 0 {
		c.nodes[d] += n
	}
}

// countNodes adds n to the nodes of the domains of node in all counters.
func countNodes(counters []*podCounter, node *Node, n int) {
	for _, c := range counters {
		c.countNodes(node, n)
	}
}

// classRules are the rules of a class as they are before its next pod is placed.
type classRules struct {
	k     *podClass
	least []int // by spread: pods in the least crowded domain
}

func (sim *Simulator) rulesOf(class *podClass) classRules {
	sim.prepareCounters(class)
	r := classRules{k: class}
	for _, s := range class.spreads {
		r.least = append(r.least, s.counter.minDomainCount(s.rule.MinDomains))
	}
	return r
}

// minDomainCount is the number of pods in the least crowded domain, 0 where there are fewer than so many domains.
// Of nodes the least crowded is an empty one, because one can always come.
func (c *podCounter) minDomainCount(domains int) int {
	if c.key == corev1.LabelHostname {
		return 0
	}
	return topology.LeastCount(c.count, c.nodes, domains)
}

// domainsWithNodes returns the number of domains that have nodes.
func (c *podCounter) domainsWithNodes() int {
	return lists.Count(c.nodes, func(nodes int) bool { return nodes > 0 })
}

// allowsNode reports whether the rules let the next pod onto the node.
func (r classRules) allowsNode(n *Node) bool {
	if !r.withinSpreads(n, 1) {
		return false
	}
	for _, c := range r.k.avoids {
		if d := c.at[n.index]; d >= 0 && c.count[d] > 0 {
			return false
		}
	}
	for _, c := range r.k.follows {
		d := c.at[n.index]
		if d < 0 || c.count[d] == 0 &&
			!topology.AffinityAllows(0, c.total > 0, c.group.Selects(r.k.pod.Namespace, r.k.pod.Labels)) {
			return false
		}
	}
	for _, c := range r.k.matched {
		if d := c.at[n.index]; d >= 0 && c.anti[d] > 0 {
			return false
		}
	}
	return true
}

// CoLocatedCount returns how many of the pods, p among them, must share one node with p. It is 0 where nodes have some
// of those pods already, which the others must join.
func (sim *Simulator) CoLocatedCount(p *cluster.Pod, pods []*cluster.Pod) int {
	class := sim.classOf(p)
	sim.prepareCounters(class)
	i := slices.IndexFunc(class.follows, func(c *podCounter) bool {
		return c.key == corev1.LabelHostname && c.total == 0 && c.group.Selects(p.Namespace, p.Labels)
	})
	if i < 0 {
		return 0
	}
	return lists.Count(pods, func(other *cluster.Pod) bool {
		return class.follows[i].group.Selects(other.Namespace, other.Labels)
	})
}

// withinSpreads reports whether the spreads hold on the node with so many more pods of the class there.
func (r classRules) withinSpreads(n *Node, more int) bool {
	for i, s := range r.k.spreads {
		d := s.counter.at[n.index]
		if d < 0 {
			return false
		}
		if s.rule.OverLeast(s.counter.count[d], r.least[i], more) > 0 {
			return false
		}
	}
	return true
}

// SpreadsBeyondNodes reports whether p spreads over domains of which some have no node: there are fewer with nodes than
// offered returns for the topology key. Spreads over single nodes do not count.
func (sim *Simulator) SpreadsBeyondNodes(p *cluster.Pod, offered func(key string) int) bool {
	class := sim.classOf(p)
	sim.prepareCounters(class)
	return slices.ContainsFunc(class.spreads, func(r spreadRule) bool {
		return r.counter.key != corev1.LabelHostname && r.counter.domainsWithNodes() < offered(r.counter.key)
	})
}
