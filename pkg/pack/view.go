package pack

import (
	"cmp"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/topology"
)

// view is a kind at one step of relaxation.
type view struct {
	kind  *kind
	wish  wish
	admit *admission
	host  []rule // on kubernetes.io/hostname
	other []rule // on any other key, sorted by key

	together bool // its pods must all share one node
}

type what int

const (
	spread what = iota
	avoid
	follow // affinity
)

// rule is one spread, affinity or anti-affinity term of a view.
type rule struct {
	what     what
	key      string
	counter  int
	self     bool // it selects the pods that carry it
	required bool // it is no preference; others that a required anti-affinity selects keep away too
	maxSkew  int
	min      int // minDomains
}

func (w *world) view(k *kind, x wish) *view {
	v := &view{kind: k, wish: x, admit: w.admissionOf(x)}
	add := func(r rule) {
		if r.key == labelHost {
			v.host = append(v.host, r)
		} else {
			v.other = append(v.other, r)
		}
	}
	follows := w.followRules(k, x.pod.Affinity)
	v.together = slices.ContainsFunc(follows, func(r rule) bool { return r.key == labelHost && r.self })
	prefer := func(r rule) {
		if !r.self || !v.together { // pods that must share a node cannot spread or keep away from each other
			add(r)
		}
	}
	for _, c := range x.pod.Spread {
		if !c.Soft {
			add(w.spreadRule(k, x, c))
		}
	}
	for _, c := range x.soft {
		prefer(w.spreadRule(k, x, c))
	}
	for _, t := range x.pod.AntiAffinity {
		add(w.termRule(k, t, avoid, true))
	}
	for _, t := range x.avoids {
		prefer(w.termRule(k, t.Term, avoid, false))
	}
	for _, r := range follows {
		add(r)
	}
	for _, t := range x.prefers {
		add(w.termRule(k, t.Term, follow, false))
	}
	slices.SortStableFunc(v.other, func(a, b rule) int { return cmp.Compare(a.key, b.key) })
	return v
}

// spreadRule counts pods on the nodes that the constraint's policies leave in.
func (w *world) spreadRule(k *kind, x wish, c cluster.Spread) rule {
	r := rule{what: spread, key: canonicalKey(c.Key), maxSkew: int(c.MaxSkew), min: int(c.MinDomains), required: !c.Soft}
	g := topology.OfSpread(c, k.pod.Namespace)
	r.self = g.Selects(k.pod.Namespace, k.pod.Labels)
	if r.key == labelHost {
		r.counter = w.counter(r.key, g, nil)
		w.counters[r.counter].limited = w.counters[r.counter].limited || r.required
		return r
	}
	bare := wish{pod: x.pod}
	if c.IgnoreNodeAffinity {
		bare.pod.NodeSelector, bare.pod.NodeAffinity = nil, nil
	}
	tolerations := []cluster.Toleration{{Operator: "Exists"}}
	if c.HonorTaints {
		tolerations = wish{pod: x.pod, bearsAll: true}.tolerations()
	}
	r.counter = w.counter(r.key, g, w.admission(bare.alternatives(false), tolerations))
	w.counters[r.counter].spread = true
	return r
}

func (w *world) termRule(k *kind, t cluster.AffinityTerm, how what, required bool) rule {
	g := topology.OfTerm(t, k.pod.Namespace, w.s.Namespaces)
	key := canonicalKey(t.Key)
	counter := w.counter(key, g, nil)
	w.counters[counter].avoided = w.counters[counter].avoided || how == avoid && required && key != labelHost
	return rule{
		what: how, key: key, counter: counter, required: required,
		self: g.Selects(k.pod.Namespace, k.pod.Labels),
	}
}

// followRules are those of required affinity. The scheduler counts a pod only when all the terms select it, whatever the key.
func (w *world) followRules(k *kind, terms []cluster.AffinityTerm) []rule {
	var all topology.Group
	for i, t := range terms {
		if g := topology.OfTerm(t, k.pod.Namespace, w.s.Namespaces); i == 0 {
			all = g
		} else {
			all = all.And(g)
		}
	}
	var out []rule
	for _, t := range terms {
		key := canonicalKey(t.Key)
		out = append(out, rule{what: follow, key: key, counter: w.counter(key, all, nil), required: true, self: all.Selects(k.pod.Namespace, k.pod.Labels)})
	}
	return out
}

// follows reports whether pods of the view want to be beside others on a node.
func (v *view) follows() bool {
	return slices.ContainsFunc(v.host, func(r rule) bool { return r.what == follow })
}

// on returns the rules of the view for the key.
func (v *view) on(key string) []rule {
	var out []rule
	for _, r := range v.other {
		if r.key == key {
			out = append(out, r)
		}
	}
	return out
}

// Ranks of kinds, in the order in which they are divided over domains: those that others must keep away from or gather around come first.
const (
	rankApart  = iota // apart from others
	rankSpread        // evenly
	rankFree          // without a rule
	rankGather        // near each other
	rankFollow        // near others
)

func (v *view) rank() int {
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
