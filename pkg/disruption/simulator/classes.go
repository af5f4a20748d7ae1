package simulator

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/topology"
)

// podClass is pods that no rule of the scheduler tells apart.
type podClass struct {
	pod       *cluster.Pod   // any one of them
	need      resources.List // of a pod that comes, which may be another in the stead of one that is there
	on        map[*Node]int
	admission *admission // nil until asked
	spreads   []spreadRule
	avoids    []*podCounter // it may not be beside pods of these
	follows   []*podCounter // it must be beside pods of these
	matched   []*podCounter // that count its pods
	resists   []*podCounter // of avoids: its pods keep those away too
	prepared  bool
	away      []topology.PodSelector // whom its required anti-affinity keeps away, by term; nil until asked
	resisting bool                   // avoids and resists are there
}

// spreadRule is a rule about how evenly pods stand.
type spreadRule struct {
	counter *podCounter
	rule    topology.Spread
}

// podCounter counts the pods of a group by domain of a topology key.
type podCounter struct {
	key     string
	group   topology.PodSelector
	filter  *cluster.Pod // of a spread: see topology.CountedNodes; nil for all nodes
	domains map[string]int
	at      []int // by node: its domain, -1 where it is in none or does not count
	count   []int // by domain: pods of the group
	anti    []int // by domain: pods that keep pods of the group away
	nodes   []int // by domain: nodes that count
	total   int
}

// classOf returns the class of the pod.
func (sim *Simulator) classOf(p *cluster.Pod) *podClass {
	key := podName{p.Namespace, p.Name}
	if class, ok := sim.classByPod[key]; ok {
		return class
	}
	text := sim.signature.FilterText(p)
	class, ok := sim.classes[string(text)]
	if !ok {
		class = &podClass{pod: p, need: p.NextNeed(), on: map[*Node]int{}}
		sim.classes[string(text)] = class
		for _, c := range sim.order {
			if c.group.Selects(p.Namespace, p.Labels) {
				class.matched = append(class.matched, c)
			}
		}
	}
	sim.classByPod[key] = class
	return class
}

// countPods counts n pods of the class that come to the node, or leave it where n is below zero.
func (class *podClass) countPods(node *Node, n int) {
	if class.on[node] += n; class.on[node] == 0 {
		delete(class.on, node)
	}
	for _, c := range class.matched {
		if d := c.at[node.index]; d >= 0 {
			c.count[d] += n
			c.total += n
		}
	}
	for _, c := range class.resists {
		if d := c.at[node.index]; d >= 0 {
			c.anti[d] += n
		}
	}
}

// prepareCounters finds the counters that the rules of the class need.
func (sim *Simulator) prepareCounters(class *podClass) {
	if class.prepared {
		return
	}
	class.prepared = true
	p := class.pod
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		rule, g := topology.SpreadOf(s, p)
		counted := topology.CountedNodes(s, p)
		class.spreads = append(class.spreads, spreadRule{sim.counterFor(s.Key, g, &counted), rule})
	}
	prepareAvoids(sim, class)
	for _, other := range sim.apart { // those that stand keep others away
		if !other.resisting && other.keepsAway(p, sim.spaces) {
			prepareAvoids(sim, other)
		}
	}
	all := topology.OfTerms(p.Affinity, p.Namespace, sim.spaces)
	for _, t := range p.Affinity {
		class.follows = append(class.follows, sim.counterFor(t.Key, all, nil))
	}
}

// prepareAvoids finds the counters of the required anti-affinity of the class.
func prepareAvoids(sim *Simulator, class *podClass) {
	if class.resisting {
		return
	}
	class.resisting = true
	for _, t := range class.pod.AntiAffinity {
		c := sim.counterFor(t.Key, topology.OfTerm(t, class.pod.Namespace, sim.spaces), nil)
		class.avoids, class.resists = append(class.avoids, c), append(class.resists, c)
		for node, n := range class.on {
			if d := c.at[node.index]; d >= 0 {
				c.anti[d] += n
			}
		}
	}
}

// keepsAway reports whether required anti-affinity of the class is about the pod.
func (class *podClass) keepsAway(p *cluster.Pod, spaces topology.Namespaces) bool {
	if class.away == nil {
		for _, t := range class.pod.AntiAffinity {
			class.away = append(class.away, topology.OfTerm(t, class.pod.Namespace, spaces))
		}
	}
	return slices.ContainsFunc(class.away, func(selected topology.PodSelector) bool {
		return selected.Selects(p.Namespace, p.Labels)
	})
}

// counterFor is the one for the group on nodes that admit the filter.
func (sim *Simulator) counterFor(key string, g topology.PodSelector, filter *cluster.Pod) *podCounter {
	id := key + "|" + g.ID()
	if filter != nil {
		id += "|" + string(sim.signature.NodeText(filter))
	}
	if c, ok := sim.counters[id]; ok {
		return c
	}
	c := &podCounter{key: key, group: g, filter: filter, domains: map[string]int{}}
	sim.counters[id], sim.order = c, append(sim.order, c)
	for _, n := range sim.nodes {
		c.addNodeDomain(n)
	}
	for _, n := range sim.nodes {
		if n.gone {
			c.countNodes(n, -1)
		}
	}
	for _, class := range sim.classes { // each adds to sums
		if !g.Selects(class.pod.Namespace, class.pod.Labels) {
			continue
		}
		class.matched = append(class.matched, c)
		for node, n := range class.on {
			if d := c.at[node.index]; d >= 0 {
				c.count[d] += n
				c.total += n
			}
		}
	}
	return c
}
