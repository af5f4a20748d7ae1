package disruption

import (
	"fmt"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/topology"
)

// podClass is pods that no rule of the scheduler tells apart.
type podClass struct {
	pod      *cluster.Pod // any one of them
	on       map[*simNode]int
	admit    []*simNode // by labels and taints; nil until asked
	spreads  []spreadRule
	avoids   []*podCounter // it may not be beside pods of these
	follows  []*podCounter // it must be beside pods of these
	matched  []*podCounter // that count its pods
	resists  []*podCounter // of avoids: its pods keep those away too
	prepared bool
	priced   bool
	floor    float64 // if priced: what one of its pods costs at least on new nodes, USD per hour
}

// spreadRule is a rule about how evenly pods stand.
type spreadRule struct {
	counter *podCounter
	rule    topology.Spread
}

// podCounter counts the pods of a group by domain of a topology key.
type podCounter struct {
	key     string
	group   topology.Group
	filter  *cluster.Pod // of a spread: the pod that asks, whose selectors and tolerations say which nodes count
	honors  [2]bool      // node affinity, taints
	domains map[string]int
	at      []int // by site: its domain, -1 where it is in none or does not count
	count   []int // by domain: pods of the group
	anti    []int // by domain: pods that keep pods of the group away
	nodes   []int // by domain: nodes that count
	total   int
}

// classOf finds the sort of the pod.
func (b *simulator) classOf(p *cluster.Pod) *podClass {
	key := podName{p.Namespace, p.Name}
	if k, ok := b.sortOf[key]; ok {
		return k
	}
	b.text = textOf(b.text[:0], p)
	k, ok := b.sorts[string(b.text)]
	if !ok {
		k = &podClass{pod: p, on: map[*simNode]int{}}
		b.sorts[string(b.text)] = k
		for _, c := range b.order {
			if c.group.Selects(p.Namespace, p.Labels) {
				k.matched = append(k.matched, c)
			}
		}
	}
	b.sortOf[key] = k
	return k
}

// textOf is what the scheduler's rules look at in a pod.
func textOf(t []byte, p *cluster.Pod) []byte {
	t = append(append(t, p.Namespace...), 0)
	t = strconv.AppendInt(append(strconv.AppendInt(t, p.Need.CPU, 36), ','), p.Need.Memory, 36)
	t = strconv.AppendInt(append(strconv.AppendInt(append(t, ','), p.Need.Ephemeral, 36), ','), p.Need.Pods, 36)
	for _, e := range p.Need.Extended {
		t = strconv.AppendInt(append(append(t, e.Name...), '='), e.Count, 36)
	}
	t = appendMap(append(t, 1), p.Labels)
	t = appendMap(append(t, 2), p.NodeSelector)
	if len(p.NodeAffinity)+len(p.VolumeZones)+len(p.Tolerations) > 0 {
		t = fmt.Append(append(t, 3), p.NodeAffinity, p.VolumeZones, p.Tolerations)
	}
	for _, c := range p.Spread {
		t = fmt.Append(append(t, 4), c.Key, c.MaxSkew, c.MinDomains, c.Soft, c.IgnoreNodeAffinity, c.HonorTaints, topology.OfSpread(c, p.Namespace).ID())
	}
	for i, list := range [][]cluster.AffinityTerm{p.Affinity, p.AntiAffinity} {
		for _, term := range list {
			t = fmt.Append(append(t, byte(5+i)), term.Key, topology.OfTerm(term, p.Namespace, nil).ID(), term.NamespaceSelector)
		}
	}
	return t
}

func appendMap(t []byte, m map[string]string) []byte {
	var few [8]string
	keys := few[:0]
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	for _, k := range keys {
		t = append(append(append(append(t, k...), 0), m[k]...), 0)
	}
	return t
}

// countPods counts pods of the sort that come to the site, or leave it where n is below zero.
func (k *podClass) countPods(x *simNode, n int) {
	if k.on[x] += n; k.on[x] == 0 {
		delete(k.on, x)
	}
	for _, c := range k.matched {
		if d := c.at[x.index]; d >= 0 {
			c.count[d] += n
			c.total += n
		}
	}
	for _, c := range k.resists {
		if d := c.at[x.index]; d >= 0 {
			c.anti[d] += n
		}
	}
}

// prepareCounters finds the counters that the rules of the sort need.
func (b *simulator) prepareCounters(k *podClass) {
	if k.prepared {
		return
	}
	k.prepared = true
	p := k.pod
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		g := topology.OfSpread(s, p.Namespace)
		c := b.counterFor(s.Key, g, p, [2]bool{!s.IgnoreNodeAffinity, s.HonorTaints})
		k.spreads = append(k.spreads, spreadRule{c, topology.Spread{MaxSkew: int(s.MaxSkew), MinDomains: int(s.MinDomains), Self: g.Selects(p.Namespace, p.Labels)}})
	}
	for _, t := range p.AntiAffinity {
		c := b.counterFor(t.Key, topology.OfTerm(t, p.Namespace, b.s.Namespaces), nil, [2]bool{})
		k.avoids, k.resists = append(k.avoids, c), append(k.resists, c)
		for x, n := range k.on {
			if d := c.at[x.index]; d >= 0 {
				c.anti[d] += n
			}
		}
	}
	var all topology.Group
	for i, t := range p.Affinity {
		if g := topology.OfTerm(t, p.Namespace, b.s.Namespaces); i == 0 {
			all = g
		} else {
			all = all.And(g)
		}
	}
	for _, t := range p.Affinity {
		k.follows = append(k.follows, b.counterFor(t.Key, all, nil, [2]bool{}))
	}
}

// counterFor is the one for the group.
func (b *simulator) counterFor(key string, g topology.Group, filter *cluster.Pod, honors [2]bool) *podCounter {
	id := key + "|" + g.ID()
	if honors != [2]bool{} {
		id += fmt.Sprint("|", honors, filter.NodeSelector, filter.NodeAffinity)
		if honors[1] {
			id += fmt.Sprint(filter.Tolerations)
		}
	}
	if c, ok := b.counters[id]; ok {
		return c
	}
	c := &podCounter{key: key, group: g, filter: filter, honors: honors, domains: map[string]int{}}
	b.counters[id], b.order = c, append(b.order, c)
	for _, x := range b.sites {
		c.addNodeDomain(x)
	}
	for _, x := range b.sites {
		if x.gone {
			c.countNodes(x, -1)
		}
	}
	for _, k := range b.sorts { // each adds to sums
		if !g.Selects(k.pod.Namespace, k.pod.Labels) {
			continue
		}
		k.matched = append(k.matched, c)
		for x, n := range k.on {
			if d := c.at[x.index]; d >= 0 {
				c.count[d] += n
				c.total += n
			}
		}
	}
	return c
}

// addNodeDomain notes the domain of the last site.
func (c *podCounter) addNodeDomain(x *simNode) {
	value, ok := x.labels[c.key]
	if c.key == corev1.LabelHostname {
		value, ok = x.name, true
	}
	if !ok || c.honors[0] && !nodeSelected(x, c.filter) || c.honors[1] && len(cluster.Untolerated(x.taints, c.filter.Tolerations)) > 0 {
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

// removeNodeDomain forgets the last site.
func (c *podCounter) removeNodeDomain(x *simNode) {
	c.countNodes(x, -1)
	c.at = c.at[:x.index]
}

func (c *podCounter) countNodes(x *simNode, n int) {
	if d := c.at[x.index]; d >= 0 {
		c.nodes[d] += n
	}
}

// countNode counts the site among those that are there, or no more where n is below zero.
func (b *simulator) countNode(x *simNode, n int) {
	for _, c := range b.order {
		c.countNodes(x, n)
	}
}

// addLastNode and unsee note a site that came last, for the pods whom it admits.
func (k *podClass) addLastNode(x *simNode) {
	if k.admit != nil && nodeAdmits(x, k.pod) {
		k.admit = append(k.admit, x)
	}
}

func (k *podClass) removeLastNode(x *simNode) {
	if n := len(k.admit); n > 0 && k.admit[n-1] == x {
		k.admit = k.admit[:n-1]
	}
}

// admittingNodes are the sites that labels and taints leave to the sort.
func (b *simulator) admittingNodes(k *podClass) []*simNode {
	if k.admit == nil {
		k.admit = make([]*simNode, 0, len(b.sites))
		for _, x := range b.sites {
			if nodeAdmits(x, k.pod) {
				k.admit = append(k.admit, x)
			}
		}
	}
	return k.admit
}

// rules are those of a sort, as they are before its next pod is placed.
type classRules struct {
	k     *podClass
	least []int // by spread: pods in the least crowded domain
}

func (b *simulator) rulesOf(k *podClass) classRules {
	b.prepareCounters(k)
	r := classRules{k: k}
	for _, s := range k.spreads {
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
	least, n := 0, 0
	for d, nodes := range c.nodes {
		if nodes == 0 {
			continue
		}
		if n == 0 || c.count[d] < least {
			least = c.count[d]
		}
		n++
	}
	if n < domains {
		return 0
	}
	return least
}

// domainsWithNodes is how many domains have nodes.
func (c *podCounter) domainsWithNodes() (n int) {
	for _, nodes := range c.nodes {
		if nodes > 0 {
			n++
		}
	}
	return n
}

// allowsNode reports whether the rules let the next pod onto the site.
func (r classRules) allowsNode(x *simNode) bool {
	if !r.withinSpreads(x, 1) {
		return false
	}
	for _, c := range r.k.avoids {
		if d := c.at[x.index]; d >= 0 && c.count[d] > 0 {
			return false
		}
	}
	for _, c := range r.k.follows {
		d := c.at[x.index]
		if d < 0 || c.count[d] == 0 && (c.total > 0 || !c.group.Selects(r.k.pod.Namespace, r.k.pod.Labels)) {
			return false
		}
	}
	for _, c := range r.k.matched {
		if d := c.at[x.index]; d >= 0 && c.anti[d] > 0 {
			return false
		}
	}
	return true
}

// coLocatedCount counts those of the pods, the pod among them, that must share a node: it is 0 where some of them stand on the board, and the others
// must join them.
func (b *simulator) coLocatedCount(p *cluster.Pod, pods []*cluster.Pod) (n int) {
	k := b.classOf(p)
	b.prepareCounters(k)
	i := slices.IndexFunc(k.follows, func(c *podCounter) bool {
		return c.key == corev1.LabelHostname && c.total == 0 && c.group.Selects(p.Namespace, p.Labels)
	})
	if i < 0 {
		return 0
	}
	for _, other := range pods {
		if k.follows[i].group.Selects(other.Namespace, other.Labels) {
			n++
		}
	}
	return n
}

// withinSpreads reports whether the site is within the spreads with so many more pods of the sort on it.
func (r classRules) withinSpreads(x *simNode, more int) bool {
	for i, s := range r.k.spreads {
		d := s.counter.at[x.index]
		if d < 0 {
			return false
		}
		n := s.counter.count[d] - r.least[i]
		if s.rule.Self {
			n += more
		}
		if n > s.rule.MaxSkew {
			return false
		}
	}
	return true
}
