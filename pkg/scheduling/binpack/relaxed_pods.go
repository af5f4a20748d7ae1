package binpack

import (
	"cmp"
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/topology"
)

// relaxedPod is a kind at one step of relaxation.
type relaxedPod struct {
	kind  *podClass
	wish  constraints
	admit *nodeAdmission
	host  []topologyRule // on kubernetes.io/hostname
	other []topologyRule // on any other key, sorted by key

	together bool // its pods must all share one node
	unbound  bool // neither preferences that count it nor rules about nobody else tie it to a domain
}

type ruleKind int

const (
	spread ruleKind = iota
	avoid
	follow // affinity
)

// topologyRule is one spread, affinity or anti-affinity term of a view.
type topologyRule struct {
	what     ruleKind
	key      string
	counter  int
	self     bool // it selects the pods that carry it
	required bool // it is no preference; others that a required anti-affinity selects keep away too
	maxSkew  int
	min      int // minDomains
}

func (top *topologyCounts) relaxedPodFor(k *podClass, x constraints) *relaxedPod {
	v := &relaxedPod{kind: k, wish: x, admit: top.admissions.admissionOf(x)}
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

// hasHostAffinity reports whether pods of the view want to be beside others on a node.
func (v *relaxedPod) hasHostAffinity() bool {
	return slices.ContainsFunc(v.host, func(r topologyRule) bool { return r.what == follow })
}

// rulesFor returns the rules of the view for the key.
func (v *relaxedPod) rulesFor(key string) []topologyRule {
	var out []topologyRule
	for _, r := range v.other {
		if r.key == key {
			out = append(out, r)
		}
	}
	return out
}

// Ranks of kinds, in the order in which they are divided over domains: those that others must keep away from or gather
// around come first.
const (
	rankApart  = iota // apart from others
	rankSpread        // evenly
	rankFree          // without a rule
	rankGather        // near each other
	rankFollow        // near others
)

func (v *relaxedPod) placementRank() int {
	rank := rankFree
	for _, r := range v.other {
		switch {
		case r.what == follow && r.self:
			rank = max(rank, rankGather)
		case r.what == follow:
			rank = max(rank, rankFollow)
		}
	}
	for _, r := range v.host {
		if r.what == follow && !r.self {
			rank = rankFollow // it goes where they go
		}
	}
	if rank > rankFree {
		return rank
	}
	for _, r := range v.other {
		if r.what == avoid {
			return rankApart
		}
		rank = rankSpread
	}
	return rank
}
