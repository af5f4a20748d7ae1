package podtopology

import (
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/fairshare"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/podclass"
)

// Required anti-affinity of pods that run keeps pods that wait off their nodes and domains. Each term of its own is
// compared with the pods that wait, and one that keeps any of them away is counted on each node.
const (
	// mostOwnTerms bounds the terms about pods of their own namespace: a cluster may have so many services.
	mostOwnTerms = 10_000
	// mostForeignTerms bounds those about pods of other namespaces.
	mostForeignTerms = 500
)

// awayTerm is a term of the pods of a namespace. Pods of one shape have the same selectors.
type awayTerm struct {
	Namespace, key, namespaces  string
	selector, namespaceSelector *cluster.Selector
}

func awayTermOf(p *cluster.Pod, t cluster.AffinityTerm) awayTerm {
	return awayTerm{p.Namespace, t.Key, strings.Join(t.Namespaces, ","), t.Selector, t.NamespaceSelector}
}

// isForeign reports whether the term may be about pods of other namespaces.
func (t awayTerm) isForeign() bool { return t.namespaces != "" || t.namespaceSelector != nil }

// awayVerdict is the outcome for a term of anti-affinity.
type awayVerdict struct {
	keeps   bool // it selects a pod that waits
	Skipped bool // nobody looked, because its namespace has too many

	terms, read int // of its namespace, where it is skipped
}

// judgeAwayTerms looks at the terms of running pods, of each namespace at as many as it may have: a tenant's terms are
// no work for others. Those about nobody who waits are counted nowhere.
func (top *Counts) judgeAwayTerms() {
	top.Away = map[awayTerm]awayVerdict{}
	terms := map[awayTerm]cluster.AffinityTerm{}
	var order [2][]awayTerm // about the own namespace, and about others
	for i := range top.s.Pods {
		p := &top.s.Pods[i]
		if p.NodeName == "" {
			continue
		}
		for _, t := range p.AntiAffinity {
			id := awayTermOf(p, t)
			if _, known := terms[id]; known {
				continue
			}
			terms[id] = t
			at := 0
			if id.isForeign() {
				at = 1
			}
			order[at] = append(order[at], id)
		}
	}
	if len(terms) == 0 {
		return
	}
	waiting := map[string][]*podclass.Class{}
	for _, class := range top.Classes.List {
		waiting[class.Pod.Namespace] = append(waiting[class.Pod.Namespace], class)
	}
	for at, most := range []int64{mostOwnTerms, mostForeignTerms} {
		left, all := shareTerms(most, order[at])
		share := maps.Clone(left)
		for _, id := range order[at] {
			if left[id.Namespace]--; left[id.Namespace] < 0 {
				top.Away[id] = awayVerdict{Skipped: true, terms: int(all[id.Namespace]), read: int(share[id.Namespace])}
				continue
			}
			g := topology.OfTerm(terms[id], id.Namespace, top.spaces)
			top.Away[id] = awayVerdict{keeps: top.keepsAny(g, waiting)}
		}
	}
}

// keepsAny reports whether the group has any of the pods that wait, which are given by namespace.
func (top *Counts) keepsAny(g topology.Group, waiting map[string][]*podclass.Class) bool {
	about := top.Classes.List
	if name, one := g.OfOneNamespace(); one {
		about = waiting[name]
	}
	return slices.ContainsFunc(about,
		func(class *podclass.Class) bool { return g.Selects(class.Pod.Namespace, class.Pod.Labels) })
}

// withUnread adds a pod of which a term is skipped, for its owner to be told; of each namespace a few.
func withUnread(all []plan.UnreadPod, p *cluster.Pod, is awayVerdict) []plan.UnreadPod {
	const each, most = 3, 50
	if len(all) == most {
		return all
	}
	n := 0
	for _, u := range all {
		if u.Pod == p.Key() {
			return all
		}
		if namespace, _, _ := strings.Cut(u.Pod, "/"); namespace == p.Namespace {
			n++
		}
	}
	if n < each {
		all = append(all, plan.UnreadPod{Pod: p.Key(), Node: p.NodeName, Terms: is.terms, Read: is.read})
	}
	return all
}

// shareTerms returns by namespace how many of the terms it may have, and how many it has.
func shareTerms(most int64, terms []awayTerm) (shares, count map[string]int64) {
	count = map[string]int64{}
	for _, id := range terms {
		count[id.Namespace]++
	}
	names := slices.Sorted(maps.Keys(count))
	wants := make([]int64, len(names))
	for i, name := range names {
		wants[i] = count[name]
	}
	shares = map[string]int64{}
	for i, share := range fairshare.MaxMin(most, wants) {
		shares[names[i]] = share
	}
	return shares, count
}
