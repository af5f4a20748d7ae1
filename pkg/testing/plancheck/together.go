package plancheck

import (
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// checkPodRules checks the rules between pods.
func (j *workloadCheck) checkPodRules() {
	hosts := map[*podGroup][]*plannedNode{}
	for _, n := range j.nodes {
		for _, s := range n.allPods() {
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
					j.checkSpread(k, c, hosts[k])
				}
			}
		}
		if a := k.pod.Spec.Affinity; a != nil && a.PodAntiAffinity != nil {
			for _, t := range a.PodAntiAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				j.checkAntiAffinity(k, t)
			}
		}
		if a := k.pod.Spec.Affinity; a != nil && a.PodAffinity != nil && !k.bound {
			for _, t := range a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution {
				j.checkAffinity(k, t, k.nearGroup())
			}
		}
	}
}

// termGroup holds what a term or constraint of a pod selects.
type termGroup struct {
	selector   labels.Selector
	namespaces []string        // sorted
	other      labels.Selector // further namespaces, by label
	also       []termGroup     // it selects only what these select too
}

func (g termGroup) includesPod(k *podGroup) bool {
	in := slices.Contains(g.namespaces, k.pod.Namespace) || g.other != nil &&
		g.other.Matches(labels.Set{corev1.LabelMetadataName: k.pod.Namespace})
	return in && g.selector.Matches(labels.Set(k.pod.Labels)) &&
		!slices.ContainsFunc(g.also, func(o termGroup) bool { return !o.includesPod(k) })
}

func (g termGroup) String() string {
	return fmt.Sprintf("%v %v %s %v", g.namespaces, g.other, g.selector, g.also)
}

// nearGroup returns what the kind's required affinity selects: the scheduler counts a pod only when all terms select
// it.
func (k *podGroup) nearGroup() termGroup {
	var out termGroup
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
	// requirements sort themselves
	for op, keys := range map[selection.Operator][]string{selection.In: match, selection.NotIn: mismatch} {
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

func (k *podGroup) groupOf(t corev1.PodAffinityTerm) termGroup {
	g := termGroup{selector: selectorOf(t.LabelSelector, k.pod.Labels, t.MatchLabelKeys, t.MismatchLabelKeys),
		namespaces: slices.Sorted(slices.Values(t.Namespaces))}
	if t.NamespaceSelector != nil {
		g.other = selectorOf(t.NamespaceSelector, nil, nil, nil)
	}
	if t.NamespaceSelector == nil && len(t.Namespaces) == 0 {
		g.namespaces = []string{k.pod.Namespace}
	}
	return g
}

func (k *podGroup) spreadGroup(c corev1.TopologySpreadConstraint) termGroup {
	s := selectorOf(c.LabelSelector, k.pod.Labels, c.MatchLabelKeys, nil)
	if s.Empty() { // of which the scheduler counts no pods
		s = labels.Nothing()
	}
	return termGroup{selector: s, namespaces: []string{k.pod.Namespace}}
}

// hasSameSpread reports whether the kind has a hard spread over the key that selects the same pods.
func (k *podGroup) hasSameSpread(key string, g termGroup) bool {
	return slices.ContainsFunc(k.pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		return c.TopologyKey == key && c.WhenUnsatisfiable == corev1.DoNotSchedule &&
			k.spreadGroup(c).String() == g.String()
	})
}

// checkSpread checks rules 5 and 6 for the pods of a kind.
func (j *workloadCheck) checkSpread(k *podGroup, c corev1.TopologySpreadConstraint, hosts []*plannedNode) {
	g := k.spreadGroup(c)
	for _, n := range hosts {
		if _, ok := n.object.Labels[c.TopologyKey]; !ok &&
			slices.ContainsFunc(n.came, func(s podShare) bool { return s.kind == k }) {
			j.addViolation("%s: %s spreads over %s, which the node does not have", n.name, k.name, c.TopologyKey)
		}
	}
	if c.TopologyKey == labelHost {
		j.spreadHosts(k, c, g, hosts)
		return
	}
	for _, o := range j.kinds {
		if o.count > 0 && g.includesPod(o) && !o.hasSameSpread(c.TopologyKey, g) {
			return // pods that keep to no spread may arrive at any time
		}
	}
	if !g.includesPod(k) {
		return
	}
	counts, gets := map[string]int{}, map[string]bool{}
	for _, d := range j.soldDomains(k, c) {
		counts[d] = 0
	}
	for _, n := range j.nodes {
		d := n.object.Labels[c.TopologyKey]
		if d == "" || !k.hasSpreadLabels(n.object) || !ignoresAffinity(c) && !k.admitsNode(n.object) {
			continue
		}
		for _, s := range n.allPods() {
			if g.includesPod(s.kind) {
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
			j.addViolation("%s: %d pods in %s and %d in the least of %s", k.name, counts[d], d, least, c.TopologyKey)
		}
	}
}

// hasSpreadLabels reports whether the node has the labels of all hard spreads of the kind. It counts for none else.
func (k *podGroup) hasSpreadLabels(n *corev1.Node) bool {
	return !slices.ContainsFunc(k.pod.Spec.TopologySpreadConstraints, func(c corev1.TopologySpreadConstraint) bool {
		_, has := n.Labels[c.TopologyKey]
		return !has && c.TopologyKey != labelHost && c.WhenUnsatisfiable == corev1.DoNotSchedule
	})
}

func ignoresAffinity(c corev1.TopologySpreadConstraint) bool {
	return c.NodeAffinityPolicy != nil && *c.NodeAffinityPolicy == corev1.NodeInclusionPolicyIgnore
}

func (j *workloadCheck) spreadHosts(k *podGroup, c corev1.TopologySpreadConstraint, g termGroup, hosts []*plannedNode) {
	for _, n := range hosts {
		sum, came := 0, false
		for _, s := range n.allPods() {
			if g.includesPod(s.kind) && s.kind.hasSameSpread(labelHost, g) {
				sum += s.n
			}
		}
		for _, s := range n.came {
			came = came || s.kind == k
		}
		if came && g.includesPod(k) && sum > int(c.MaxSkew) {
			j.addViolation("%s: %d pods like %s, its spread allows %d", n.name, sum, k.name, c.MaxSkew)
		}
	}
}

// soldDomains are the values of the key that a pool sells, or a node has, where the pod's own node rules allow it.
func (j *workloadCheck) soldDomains(k *podGroup, c corev1.TopologySpreadConstraint) []string {
	spec := corev1.PodSpec{NodeSelector: k.pod.Spec.NodeSelector}
	if a := k.pod.Spec.Affinity; a != nil {
		spec.Affinity = &corev1.Affinity{NodeAffinity: a.NodeAffinity}
	}
	id := fmt.Sprintf("%s %t %s", c.TopologyKey, ignoresAffinity(c), spec.String())
	for _, o := range k.pod.Spec.TopologySpreadConstraints {
		if o.WhenUnsatisfiable == corev1.DoNotSchedule {
			id += " " + o.TopologyKey
		}
	}
	if honorsTaints(c) {
		id += fmt.Sprint(k.pod.Spec.Tolerations)
	}
	if out, ok := j.spots[id]; ok {
		return out
	}
	found := map[string]bool{}
	see := func(n *corev1.Node, taints []corev1.Taint) {
		v := n.Labels[c.TopologyKey]
		if v == "" || found[v] || !k.hasSpreadLabels(n) || !ignoresAffinity(c) && !k.admitsNode(n) {
			return
		}
		if _, ok := k.untoleratedTaint(taints); ok || !honorsTaints(c) {
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
			n := j.nodeObject("", p, t, "", "")
			for _, zone := range t.zones {
				for _, capacity := range t.usage {
					n.Labels[labelZone], n.Labels[labelZoneID], n.Labels[labelCapacity] = zone, j.market.zoneIDs[zone],
						capacity
					if _, ok := t.priceAt(zone, capacity); ok && firstRefusal(p, n.Labels) == "" {
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

// domainTally counts the pods of interest in a domain: of the kind that asks, and of those it selects.
type domainTally struct {
	own, ownCame           int
	meant, meantCame, free int      // free: selected pods that did not have to come here
	names                  []string // of the selected kinds
}

func (j *workloadCheck) domainTallies(k *podGroup, key string, g termGroup,
	free func(s podShare, came bool) bool) map[string]*domainTally {
	out := map[string]*domainTally{}
	for _, n := range j.nodes {
		d := n.object.Labels[key]
		if d == "" {
			continue
		}
		if out[d] == nil {
			out[d] = &domainTally{}
		}
		for i, s := range n.allPods() {
			came := i >= len(n.there)
			if s.kind == k {
				out[d].own += s.n
				out[d].ownCame += ifCame(s.n, came)
			}
			if !g.includesPod(s.kind) {
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

// checkAntiAffinity checks required anti-affinity: of newcomers towards all, and of those that were there towards
// newcomers (rule 7).
func (j *workloadCheck) checkAntiAffinity(k *podGroup, t corev1.PodAffinityTerm) {
	g := k.groupOf(t)
	self := 0
	if g.includesPod(k) {
		self = 1
	}
	all := j.domainTallies(k, t.TopologyKey, g, func(podShare, bool) bool { return false })
	for _, d := range slices.Sorted(maps.Keys(all)) {
		if a := all[d]; a.own > 0 && a.meant > self && a.ownCame+a.meantCame > 0 {
			j.addViolation("%s in %s: too near to %s", k.name, d, slices.Min(a.names))
		}
	}
}

// checkAffinity checks required affinity. Selected pods that were there, or that carry no such term themselves, say
// where; without any, pods that select themselves choose one domain together (rule 7).
func (j *workloadCheck) checkAffinity(k *podGroup, t corev1.PodAffinityTerm, g termGroup) {
	all := j.domainTallies(k, t.TopologyKey, g, func(s podShare, came bool) bool {
		return !came ||
			!s.kind.hasSameAffinity(t.TopologyKey, g)
	})
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
	switch self := g.includesPod(k); {
	case len(mine) == 0:
	case self && !seeded && len(kindred) > 1:
		j.addViolation("%s: it and its like are in %v of %s, they want one", k.name, kindred, t.TopologyKey)
	default:
		for _, d := range mine {
			if self && seeded && all[d].free == 0 || !self && all[d].meant == 0 {
				j.addViolation("%s in %s: nobody there for it to be near to", k.name, d)
			}
		}
	}
	for _, n := range j.nodes {
		if n.object.Labels[t.TopologyKey] == "" &&
			slices.ContainsFunc(n.came, func(s podShare) bool { return s.kind == k }) {
			j.addViolation("%s: %s wants to be near by %s, which the node does not have", n.name, k.name, t.TopologyKey)
		}
	}
}

// hasSameAffinity reports whether the kind has a required affinity over the key towards the same pods.
func (k *podGroup) hasSameAffinity(key string, g termGroup) bool {
	a := k.pod.Spec.Affinity
	return a != nil && a.PodAffinity != nil && slices.ContainsFunc(
		a.PodAffinity.RequiredDuringSchedulingIgnoredDuringExecution,
		func(t corev1.PodAffinityTerm) bool {
			return t.TopologyKey == key && k.nearGroup().String() == g.String()
		})
}
