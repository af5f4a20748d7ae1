package topology

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// Group is a set of pods: those of some namespaces that a selector selects. It names no namespace that a term selects:
// a cluster has thousands, and a pod dozens of terms.
type Group struct {
	Selector *cluster.Selector
	within   []scope // the namespaces: those that are in each of them
	all      Namespaces
}

// scope is the namespaces that a term means: those that it names, and those that it selects.
type scope struct {
	names    []string // sorted
	selector *cluster.Selector
}

// Namespaces tells the labels of the namespaces that there are, by name.
type Namespaces func() map[string]map[string]string

// IndexNamespaces finds them by name, once somebody asks.
func IndexNamespaces(all []cluster.Namespace) Namespaces {
	return sync.OnceValue(func() map[string]map[string]string {
		out := make(map[string]map[string]string, len(all))
		for _, n := range all {
			out[n.Name] = n.Labels
		}
		return out
	})
}

// OfSpread is the group that a spread constraint of a pod in namespace counts.
func OfSpread(c cluster.Spread, namespace string) Group {
	return Group{Selector: c.Selector, within: []scope{{names: []string{namespace}}}}
}

// OfTerm is the group that an affinity term of a pod in namespace means: the pod's own namespace when the term has
// neither names nor a selector, else the named ones and those that the selector selects.
func OfTerm(t cluster.AffinityTerm, namespace string, all Namespaces) Group {
	in := scope{t.Namespaces, t.NamespaceSelector}
	switch {
	case len(t.Namespaces) == 0 && t.NamespaceSelector == nil:
		in.names = []string{namespace}
	case !slices.IsSorted(t.Namespaces):
		in.names = slices.Sorted(slices.Values(t.Namespaces))
	}
	return Group{Selector: t.Selector, within: []scope{in}, all: all}
}

// And is the group of the pods that belong to both.
func (g Group) And(o Group) Group {
	out := Group{within: slices.Concat(g.within, o.within), all: g.all}
	if g.Selector != nil && o.Selector != nil {
		rs := slices.Concat(g.Selector.Requirements, o.Selector.Requirements)
		slices.SortStableFunc(rs, func(a, b requirements.Requirement) int { return strings.Compare(a.Key, b.Key) })
		out.Selector = &cluster.Selector{Requirements: rs}
	}
	return out
}

// Selects reports whether a pod with these labels in namespace belongs to the group.
func (g Group) Selects(namespace string, labels map[string]string) bool {
	return g.Covers(namespace) && g.Selector.Matches(labels)
}

// Covers reports whether pods of the namespace may belong to the group.
func (g Group) Covers(namespace string) bool {
	return !slices.ContainsFunc(g.within, func(in scope) bool { return !g.contains(in, namespace) })
}

func (g Group) contains(in scope, namespace string) bool {
	if _, named := slices.BinarySearch(in.names, namespace); named || in.selector == nil {
		return named
	}
	labels, exists := g.all()[namespace]
	return exists && in.selector.Matches(labels)
}

// OfOneNamespace is the namespace of all pods of the group, where it names no more than that one.
func (g Group) OfOneNamespace() (name string, one bool) {
	if in := g.within; len(in) == 1 && len(in[0].names) == 1 && in[0].selector == nil {
		return in[0].names[0], true
	}
	return "", false
}

// ID is the group as text; equal texts mean equal groups.
func (g Group) ID() string {
	var parts []string
	for _, in := range g.within {
		parts = append(parts, strings.Join(in.names, ",")+selectorText(in.selector))
	}
	slices.Sort(parts)
	return strings.Join(slices.Compact(parts), "&") + selectorText(g.Selector)
}

func selectorText(s *cluster.Selector) string {
	if s == nil {
		return "|nothing"
	}
	parts := make([]string, len(s.Requirements))
	for i, r := range s.Requirements {
		parts[i] = fmt.Sprintf("%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
	}
	return "|" + strings.Join(parts, "&")
}

// Spread is a spread constraint over numbered domains.
type Spread struct {
	MaxSkew    int
	MinDomains int
	Self       bool   // the constraint selects the pod that carries it
	Eligible   []bool // the domains that count for the least crowded one
}

// Least is the number of pods in the least crowded eligible domain; 0 when there are fewer eligible domains than
// MinDomains asks for, or none.
func (s Spread) Least(count []int) int { return LeastCount(count, s.Eligible, s.MinDomains) }

// LeastCount is the number of pods in the least crowded domain of those that count, which are not zero in eligible; 0
// when there are fewer of them than minDomains, or none.
func LeastCount[E comparable](count []int, eligible []E, minDomains int) int {
	var not E
	least, n := 0, 0
	for d, e := range eligible {
		if e == not {
			continue
		}
		if n == 0 || count[d] < least {
			least = count[d]
		}
		n++
	}
	if n < minDomains {
		return 0
	}
	return least
}

// Admits reports whether one more pod may go to domain d.
func (s Spread) Admits(count []int, d int) bool {
	return s.Over(count, d, 1) <= 0
}

// Over is by how much domain d would exceed the skew if more pods arrived there.
func (s Spread) Over(count []int, d, more int) int {
	return s.OverLeast(count[d], s.Least(count), more)
}

// OverLeast is by how much a domain with that many pods would exceed the skew over the least crowded one if more pods
// arrived there.
func (s Spread) OverLeast(here, least, more int) int {
	if !s.Self {
		more = 0
	}
	return here + more - least - s.MaxSkew
}

// AffinityAllows reports whether a required affinity lets a pod into a domain with that many pods of its group: some
// are there, or none is anywhere and the pod belongs to the group itself, so that it may be the first.
func AffinityAllows(here, anywhere int, belongs bool) bool {
	return here > 0 || anywhere == 0 && belongs
}
