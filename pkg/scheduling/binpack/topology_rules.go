package binpack

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
)

func (top *topologyCounts) relaxedPodFor(k *podClass, x constraints) *relaxedPod {
	v := &relaxedPod{class: k, wish: x, admit: top.admissions.admissionOf(x)}
	add := func(r topologyRule) {
		if r.key == labelHost {
			v.host = append(v.host, r)
		} else {
			v.other = append(v.other, r)
		}
	}
	follows := top.followRules(k, x.pod.Affinity)
	v.together = slices.ContainsFunc(follows, func(r topologyRule) bool { return r.key == labelHost && r.self })
	prefer := func(r topologyRule) {
		if !r.self || !v.together { // pods that must share a node cannot spread or keep away from each other
			add(r)
		}
	}
	for _, c := range x.pod.Spread {
		if !c.Soft {
			add(top.spreadRule(k, x, c))
		}
	}
	for _, c := range x.soft {
		prefer(top.spreadRule(k, x, c))
	}
	for _, t := range x.pod.AntiAffinity {
		add(top.termRule(k, t, avoid, true))
	}
	for _, t := range x.avoids {
		prefer(top.termRule(k, t.Term, avoid, false))
	}
	for _, r := range follows {
		add(r)
	}
	for _, t := range x.prefers {
		add(top.termRule(k, t.Term, follow, false))
	}
	slices.SortStableFunc(v.other, func(a, b topologyRule) int { return cmp.Compare(a.key, b.key) })
	return v
}

// addUnbound adds a last step to the relaxation of a class that only preferences, its own or others', or rules about
// nobody else tie to a domain: it is tied no more. A node for it is flexible then, as minValues may want it.
func (top *topologyCounts) addUnbound(k *podClass) {
	v := *k.lastRelaxation()
	v.unbound = true
	if len(top.keysOf(&v)) < len(top.keysOf(k.lastRelaxation())) {
		k.views = append(k.views, &v)
	}
}

// spreadRule counts pods on the nodes that the constraint's policies leave in.
func (top *topologyCounts) spreadRule(k *podClass, x constraints, c cluster.Spread) topologyRule {
	r := topologyRule{what: spread, key: canonicalKey(c.Key), maxSkew: int(c.MaxSkew), min: int(c.MinDomains),
		required: !c.Soft}
	g := topology.OfSpread(c, k.pod.Namespace)
	r.self = g.Selects(k.pod.Namespace, k.pod.Labels)
	if r.key == labelHost {
		r.counter = top.counterIndex(r.key, g, nil)
		top.counters[r.counter].limited = top.counters[r.counter].limited || r.required
		return r
	}
	bare := constraints{pod: x.pod}
	if c.IgnoreNodeAffinity {
		bare.pod.NodeSelector, bare.pod.NodeAffinity = nil, nil
	}
	tolerations := []cluster.Toleration{{Operator: "Exists"}}
	if c.HonorTaints {
		tolerations = constraints{pod: x.pod, bearsAll: true}.effectiveTolerations()
	}
	r.counter = top.counterIndex(r.key, g, top.admissions.admissionFor(bare.nodeAlternatives(false), tolerations))
	top.counters[r.counter].spread = true
	top.counters[r.counter].strict = top.counters[r.counter].strict || r.required
	return r
}

func (top *topologyCounts) termRule(k *podClass, t cluster.AffinityTerm, how ruleKind, required bool) topologyRule {
	g := topology.OfTerm(t, k.pod.Namespace, top.s.Namespaces)
	key := canonicalKey(t.Key)
	counter := top.counterIndex(key, g, nil)
	top.counters[counter].avoided = top.counters[counter].avoided || how == avoid && required && key != labelHost
	top.counters[counter].strict = top.counters[counter].strict || required
	return topologyRule{
		what: how, key: key, counter: counter, required: required,
		self: g.Selects(k.pod.Namespace, k.pod.Labels),
	}
}

// followRules are those of required affinity. The scheduler counts a pod only when all the terms select it, whatever
// the key.
func (top *topologyCounts) followRules(k *podClass, terms []cluster.AffinityTerm) []topologyRule {
	var all topology.Group
	for i, t := range terms {
		if g := topology.OfTerm(t, k.pod.Namespace, top.s.Namespaces); i == 0 {
			all = g
		} else {
			all = all.And(g)
		}
	}
	var out []topologyRule
	for _, t := range terms {
		key := canonicalKey(t.Key)
		counter := top.counterIndex(key, all, nil)
		top.counters[counter].strict = true
		out = append(out, topologyRule{what: follow, key: key, counter: counter, required: true,
			self: all.Selects(k.pod.Namespace, k.pod.Labels)})
	}
	return out
}

// keysOf lists the topology keys whose rules, own or others', concern the view.
func (top *topologyCounts) keysOf(v *relaxedPod) []string {
	var keys []string
	for _, r := range v.other {
		if !v.unbound || !top.concernsNobody(v, r) {
			keys = append(keys, r.key)
		}
	}
	for _, c := range v.class.matched {
		if x := top.counters[c]; x.key != labelHost && (!v.unbound || x.strict && !top.concernsOnly(v, c)) {
			keys = append(keys, x.key)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}

// concernsNobody reports whether the rule of the view is anti-affinity over a label of every node to pods of which no
// other runs or waits, or affinity to its only pod.
func (top *topologyCounts) concernsNobody(v *relaxedPod, r topologyRule) bool {
	lone := len(v.class.pods) == 1
	return (r.what == avoid && (!r.self || lone) || r.what == follow && r.self && lone) &&
		onEveryNode(r.key) && !top.hasRunningMatch(r) &&
		!slices.ContainsFunc(top.classes.list, func(o *podClass) bool {
			return o != v.class &&
				slices.Contains(o.matched, r.counter)
		})
}

// concernsOnly reports whether the counter is that of a rule about nobody but the view's own pod, and of no rule of
// other pods.
func (top *topologyCounts) concernsOnly(v *relaxedPod, counter int) bool {
	of := func(r topologyRule) bool { return r.counter == counter }
	return slices.ContainsFunc(v.other, of) &&
		!slices.ContainsFunc(v.other, func(r topologyRule) bool { return of(r) && !top.concernsNobody(v, r) }) &&
		sumCounts(top.tally.anti[counter]) == 0 &&
		!slices.ContainsFunc(top.classes.list, func(o *podClass) bool {
			return o != v.class &&
				slices.ContainsFunc(o.lastRelaxation().other, of)
		})
}

// strictestSpread is the required spread with the counter that allows least.
func (top *topologyCounts) strictestSpread(counter int) topologyRule {
	if top.spreads != nil {
		return top.spreads[counter]
	}
	top.spreads = make([]topologyRule, len(top.counters))
	for _, k := range top.classes.list {
		for _, r := range k.lastRelaxation().other {
			s := &top.spreads[r.counter]
			if r.what == spread && r.required && (s.maxSkew == 0 || r.maxSkew < s.maxSkew) {
				*s = r
			}
		}
	}
	return top.spreads[counter]
}

// onlyCountedClass returns the class that is the only one the counter counts, nil when there are several.
func (top *topologyCounts) onlyCountedClass(counter int) *podClass {
	if top.lone == nil {
		top.lone = make([]*podClass, len(top.counters))
		seen := make([]int, len(top.counters))
		for _, k := range top.classes.list {
			for _, c := range k.matched {
				seen[c]++
				top.lone[c] = k
			}
		}
		for c, n := range seen {
			if n != 1 {
				top.lone[c] = nil
			}
		}
	}
	return top.lone[counter]
}

// evenSplit is a spread that makes each of several domains take its part of the pods of a class; without a key, none.
type evenSplit struct {
	key     string
	domains []string
	skew    int
}

// spreadSplitsEvenly tells whether a spread makes each of several domains take its part of the pods of the view: one
// that counts nobody else, in domains that they can reach.
func (top *topologyCounts) spreadSplitsEvenly(v *relaxedPod) evenSplit {
	if slices.ContainsFunc(top.nodes.hosts, func(b *bin) bool { return len(b.wanted) > 0 }) {
		return evenSplit{} // where pods of an earlier pass stand is not asked again
	}
	for _, r := range v.other {
		if r.what != spread || !r.self || r.min > 0 || top.onlyCountedClass(r.counter) != v.class {
			continue
		}
		x := evenSplit{key: r.key, skew: r.maxSkew}
		eligible := top.eligibleDomains(r).Eligible
		for d, domain := range top.domains[r.key] {
			if eligible[d] && top.tally.count[r.counter][d] == 0 {
				x.domains = append(x.domains, domain)
			} else if top.tally.count[r.counter][d] > 0 {
				return evenSplit{}
			}
		}
		if len(x.domains) > 1 {
			return x
		}
	}
	return evenSplit{}
}

// waitsInCircle is the reason of pods that a scheduler, which takes one pod after the other, can never place.
const waitsInCircle = "pod affinity: the pods it must be near to wait for others in turn, and none of them can come first; " +
	"let one of them do without, or select itself"

// dropCircles takes out the pods whose required affinity goes round in a circle. Everybody's wish would hold once all
// were there, but nobody can be the first, so nodes made for them would stay empty.
func (top *topologyCounts) dropCircles() {
	came := make([]bool, len(top.classes.list))
	arrives := func(k *podClass) bool {
		for _, r := range k.requiredAffinityRules() {
			if !r.self && !top.hasRunningMatch(r) &&
				!slices.ContainsFunc(top.classes.list, func(o *podClass) bool {
					return came[o.id] &&
						slices.Contains(o.matched, r.counter)
				}) {
				return false
			}
		}
		return true
	}
	for again := true; again; {
		again = false
		for i, k := range top.classes.list {
			if !came[i] && arrives(k) {
				came[i], again = true, true
			}
		}
	}
	for i, k := range top.classes.list {
		if came[i] || slices.ContainsFunc(k.requiredAffinityRules(),
			func(r topologyRule) bool { return !r.self && !top.hasRunningMatch(r) && !top.hasPendingMatch(r) }) {
			continue // of pods that do not exist at all the reason is another
		}
		for _, p := range k.pods {
			top.classes.unmodelled = append(top.classes.unmodelled, plan.Unplaced{Pod: p, Why: []string{waitsInCircle}})
		}
		k.pods = nil
	}
}
