package topology

import (
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
)

// Group is a set of pods: those of some namespaces that a selector selects.
type Group struct {
	Namespaces []string // sorted
	Selector   *cluster.Selector
}

// OfSpread is the group that a spread constraint of a pod in namespace counts.
func OfSpread(c cluster.Spread, namespace string) Group {
	return Group{Namespaces: []string{namespace}, Selector: c.Selector}
}

// OfTerm is the group that an affinity term of a pod in namespace means: the pod's own namespace when the term has
// neither names nor a selector, else the named ones and those that the selector selects.
func OfTerm(t cluster.AffinityTerm, namespace string, all []cluster.Namespace) Group {
	if len(t.Namespaces) == 0 && t.NamespaceSelector == nil {
		return Group{Namespaces: []string{namespace}, Selector: t.Selector}
	}
	names := slices.Clone(t.Namespaces)
	if t.NamespaceSelector != nil {
		for _, n := range all {
			if t.NamespaceSelector.Matches(n.Labels) {
				names = append(names, n.Name)
			}
		}
	}
	slices.Sort(names)
	return Group{Namespaces: slices.Compact(names), Selector: t.Selector}
}

// And is the group of the pods that belong to both.
func (g Group) And(o Group) Group {
	out := Group{Namespaces: slices.DeleteFunc(slices.Clone(g.Namespaces),
		func(n string) bool { return !slices.Contains(o.Namespaces, n) })}
	if g.Selector != nil && o.Selector != nil {
		rs := slices.Concat(g.Selector.Requirements, o.Selector.Requirements)
		slices.SortStableFunc(rs, func(a, b requirements.Requirement) int { return strings.Compare(a.Key, b.Key) })
		out.Selector = &cluster.Selector{Requirements: rs}
	}
	return out
}

// Selects reports whether a pod with these labels in namespace belongs to the group.
func (g Group) Selects(namespace string, labels map[string]string) bool {
	_, ok := slices.BinarySearch(g.Namespaces, namespace)
	return ok && g.Selector.Matches(labels)
}

// ID is the group as text; equal groups have equal ids.
func (g Group) ID() string {
	if g.Selector == nil {
		return strings.Join(g.Namespaces, ",") + "|nothing"
	}
	parts := make([]string, len(g.Selector.Requirements))
	for i, r := range g.Selector.Requirements {
		parts[i] = fmt.Sprintf("%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
	}
	return strings.Join(g.Namespaces, ",") + "|" + strings.Join(parts, "&")
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
