package checker

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// together checks the rules between pods.
func (j *job) together() {
	hosts := map[*kind][]*node{}
	for _, n := range j.nodes {
		for _, s := range n.all() {
			if !slices.Contains(hosts[s.kind], n) {
				hosts[s.kind] = append(hosts[s.kind], n)
			}
		}
	}
	for _, k := range j.kinds {
		if len(hosts[k]) == 0 {
			continue
		}
		if !k.bound {
			for _, c := range k.pod.Spec.TopologySpreadConstraints {
				if c.WhenUnsatisfiable == corev1.DoNotSchedule {
					j.spread(k, c, hosts[k])
				}
			}
		}
		if a := k.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				j.apart(k, t)
			}
		}
		if a := k.pod.Spec.Affinity; a != nil && a.PodAffinity != nil && !k.bound {
			for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				j.near(k, t, k.nearGroup())
			}
		}
	}
}

// group is what a term or constraint of a pod selects.
type group struct {
	selector   labels.Selector
	namespaces []string        // sorted
	other      labels.Selector // further namespaces, by label
	also       []group         // it selects only what these select too
}

func (g group) has(k *kind) bool {
	in := slices.Contains(g.namespaces, k.pod.Namespace) || g.other != nil && g.other.Matches(labels.Set{corev1.LabelMetadataName: k.pod.Namespace})
	return in && g.selector.Matches(labels.Set(k.pod.Labels)) && !slices.ContainsFunc(g.also, func(o group) bool { return !o.has(k) })
}

func (g group) String() string {
	return fmt.Sprintf("%v %v %s %v", g.namespaces, g.other, g.selector, g.also)
}

// nearGroup is what the kind's required affinity selects: the scheduler counts a pod only when all terms select it.
func (k *kind) nearGroup() group {
	var out group
	for i, t := range k.pod.Spec.Affinity.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
		if g := k.groupOf(t); i == 0 {
			out = g
		} else {
			out.also = append(out.also, g)
		}
	}
	return out
}

// selectorOf adds what the pod's own labels say for keys. A selector that is missing or faulty selects nothing.
func selectorOf(s *metav1.LabelSelector, own map[string]string, match, mismatch []string) labels.Selector {
	out, err := metav1.LabelSelectorAsSelector(s)
	if err != nil || s == nil {
		return labels.Nothing()
	}
	for op, keys := range map[selection.Operator][]string{selection.In: match, selection.NotIn: mismatch} { // requirements sort themselves
		for _, k := range keys {
			if v, ok := own[k]; ok {
				if r, err := labels.NewRequirement(k, op, []string{v}); err == nil {
					out = out.Add(*r)
				}
			}
		}
	}
	return out
}

func (k *kind) groupOf(t corev1.PodAffinityTerm) group {
	g := group{selector: selectorOf(t.LabelSelector, k.pod.Labels, t.MatchLabelKeys, t.MismatchLabelKeys), namespaces: slices.Sorted(slices.Values(t.Namespaces))}
	if t.NamespaceSelector != nil {
		g.other = selectorOf(t.NamespaceSelector, nil, nil, nil)
	}
	if t.NamespaceSelector == nil && len(t.Namespaces) == 0 {
		g.namespaces = []string{k.pod.Namespace}
	}
	return g
}

func (k *kind) spreadGroup(c corev1.TopologySpreadConstraint) group {
	return group{selector: selectorOf(c.LabelSelector, k.pod.Labels, c.MatchLabelKeys, nil), namespaces: []string{k.pod.Namespace}}
}

// carries reports whether the kind has a hard spread over the key that selects the same pods.
func (k *kind) carries(key string, g group) bool {
	return slices.ContainsFunc(k.pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule && k.spreadGroup(c).String() == g.String()
	})
}

// spread checks rules 5 and 6 for the pods of a kind.
func (j *job) spread(k *kind, c corev1.TopologySpreadConstraint, hosts []*node) {
	g := k.spreadGroup(c)
	for _, n := range hosts {
		if _, ok := n.object.Labels[c.TopologyKey]; !ok && slices.ContainsFunc(n.came, func(s share) bool { return s.kind == k }) {
			j.bad("%s: %s spreads over %s, which the node does not have", n.name, k.name, c.TopologyKey)
		}
	}
	if c.TopologyKey == labelHost {
		j.spreadHosts(k, c, g, hosts)
		return
	}
	for _, o := range j.kinds {
		if o.count > 0 && g.has(o) && !o.carries(c.TopologyKey, g) {
			return // pods that keep to no spread may arrive at any time
		}
	}
	if !g.has(k) {
		return
	}
	counts, gets := map[string]int{}, map[string]bool{}
	for _, d := range j.domains(k, c) {
		counts[d] = 0
	}
	for _, n := range j.nodes {
		d := n.object.Labels[c.TopologyKey]
		if d == "" || !ignoresAffinity(c) && !k.admits(n.object) {
			continue
		}
		for _, s := range n.all() {
			if g.has(s.kind) {
				counts[d] += s.n
			}
		}
		for _, s := range n.came {
			gets[d] = gets[d] || s.kind == k
		}
	}
	least := -1
	for _, n := range counts {
		if least < 0 || n < least {
			least = n
		}
	}
	if c.MinDomains != nil && len(counts) < int(*c.MinDomains) {
		least = 0
	}
	for _, d := range slices.Sorted(maps.Keys(gets)) {
		if gets[d] && counts[d]-least > int(c.MaxSkew) {
			j.bad("%s: %d pods in %s and %d in the least of %s", k.name, counts[d], d, least, c.TopologyKey)
		}
	}
}

func ignoresAffinity(c corev1.TopologySpreadConstraint) bool {
	return c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
}

func (j *job) spreadHosts(k *kind, c corev1.TopologySpreadConstraint, g group, hosts []*node) {
	for _, n := range hosts {
		sum, came := 0, false
		for _, s := range n.all() {
			if g.has(s.kind) && s.kind.carries(labelHost, g) {
				sum += s.n
			}
		}
		for _, s := range n.came {
			came = came || s.kind == k
		}
		if came && g.has(k) && sum > int(c.MaxSkew) {
			j.bad("%s: %d pods like %s, its spread allows %d", n.name, sum, k.name, c.MaxSkew)
		}
	}
}

// domains are the values of the key that a pool sells, or a node has, where the pod's own node rules allow it.
func (j *job) domains(k *kind, c corev1.TopologySpreadConstraint) []string {
	spec := corev1.PodSpec{NodeSelector: k.pod.Spec.NodeSelector}
	if a := k.pod.Spec.Affinity; a != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	}
	id := fmt.Sprintf("%s %t %s", c.TopologyKey, ignoresAffinity(c), spec.String())
	if honorsTaints(c) {
		id += fmt.Sprint(k.pod.Spec.Tolerations)
	}
	if out, ok := j.spots[id]; ok {
		return out
	}
	found := map[string]bool{}
	see := func(n *corev1.Node, taints []corev1.Taint) {
		v := n.Labels[c.TopologyKey]
		if v == "" || found[v] || !ignoresAffinity(c) && !k.admits(n) {
			return
		}
		if _, ok := k.bears(taints); ok || !honorsTaints(c) {
			found[v] = true
		}
	}
	for _, n := range j.nodes {
		if n.object.UID != newNode {
			see(n.object, n.taints)
		}
	}
	for i := range j.file.Pools {
		p := &j.file.Pools[i]
		for _, name := range j.market.names {
			t := j.market.types[name]
			n := j.object("", p, t, "", "")
			for _, zone := range t.zones {
				for _, capacity := range t.usage {
					n.Labels[labelZone], n.Labels[labelZoneID], n.Labels[labelCapacity] = zone, j.market.zoneIDs[zone], capacity
					if _, ok := t.price(zone, capacity); ok && refuses(p, n.Labels) == "" {
						see(n, p.Spec.Template.Spec.Taints)
					}
				}
			}
		}
	}
	j.spots[id] = slices.Sorted(maps.Keys(found))
	return j.spots[id]
}

func honorsTaints(c corev1.TopologySpreadConstraint) bool {
	return c.NodeTaintsPolicy != nil && *c.NodeTaintsPolicy == corev1.NodeInclusionPolicyHonor
}

// tally is how many pods of interest a domain has: of the kind that asks, and of those it selects.
type tally struct {
	own, ownCame           int
	meant, meantCame, free int      // free: selected pods that did not have to come here
	names                  []string // of the selected kinds
}

func (j *job) tallies(k *kind, key string, g group, free func(s share, came bool) bool) map[string]*tally {
	out := map[string]*tally{}
	for _, n := range j.nodes {
		d := n.object.Labels[key]
		if d == "" {
			continue
		}
		if out[d] == nil {
			out[d] = &tally{}
		}
		for i, s := range n.all() {
			came := i >= len(n.there)
			if s.kind == k {
				out[d].own += s.n
				out[d].ownCame += ifCame(s.n, came)
			}
			if !g.has(s.kind) {
				continue
			}
			out[d].meant += s.n
			out[d].meantCame += ifCame(s.n, came)
			if free(s, came) {
				out[d].free += s.n
			}
			out[d].names = append(out[d].names, s.kind.name)
		}
	}
	return out
}

func ifCame(n int, came bool) int {
	if came {
		return n
	}
	return 0
}

// apart checks required anti-affinity: of newcomers towards all, and of those that were there towards newcomers (rule 7).
func (j *job) apart(k *kind, t corev1.PodAffinityTerm) {
	g := k.groupOf(t)
	self := 0
	if g.has(k) {
		self = 1
	}
	all := j.tallies(k, t.TopologyKey, g, func(share, bool) bool { return false })
	for _, d := range slices.Sorted(maps.Keys(all)) {
		if a := all[d]; a.own > 0 && a.meant > self && a.ownCame+a.meantCame > 0 {
			j.bad("%s in %s: too near to %s", k.name, d, slices.Min(a.names))
		}
	}
}

// near checks required affinity. Selected pods that were there, or that carry no such term themselves, say where; without
// any, pods that select themselves choose one domain together (rule 7).
func (j *job) near(k *kind, t corev1.PodAffinityTerm, g group) {
	all := j.tallies(k, t.TopologyKey, g, func(s share, came bool) bool { return !came || !s.kind.follows(t.TopologyKey, g) })
	var mine, kindred []string // domains of the kind's newcomers; of all newcomers that it selects too
	seeded := false
	for _, d := range slices.Sorted(maps.Keys(all)) {
		seeded = seeded || all[d].free > 0
		if all[d].ownCame > 0 {
			mine = append(mine, d)
		}
		if all[d].ownCame+all[d].meantCame > 0 {
			kindred = append(kindred, d)
		}
	}
	switch self := g.has(k); {
	case len(mine) == 0:
	case self && !seeded && len(kindred) > 1:
		j.bad("%s: it and its like are in %v of %s, they want one", k.name, kindred, t.TopologyKey)
	default:
		for _, d := range mine {
			if self && seeded && all[d].free == 0 || !self && all[d].meant == 0 {
				j.bad("%s in %s: nobody there for it to be near to", k.name, d)
			}
		}
	}
	for _, n := range j.nodes {
		if n.object.Labels[t.TopologyKey] == "" && slices.ContainsFunc(n.came, func(s share) bool { return s.kind == k }) {
			j.bad("%s: %s wants to be near by %s, which the node does not have", n.name, k.name, t.TopologyKey)
		}
	}
}

// follows reports whether the kind has a required affinity over the key towards the same pods.
func (k *kind) follows(key string, g group) bool {
	a := k.pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && slices.ContainsFunc(a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.PodAffinityTerm) bool {
			return t.TopologyKey == key && k.nearGroup().String() == g.String()
		})
}
