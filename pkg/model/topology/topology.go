package topology

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// PodSelector is a set of pods: those of some namespaces that a selector selects. It names no namespace that a term
// selects: a cluster has thousands, and a pod dozens of terms.
type PodSelector struct {
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
func OfSpread(c cluster.Spread, namespace string) PodSelector {
	return PodSelector{Selector: c.Selector, within: []scope{{names: []string{namespace}}}}
}

// OfTerm is the group that an affinity term of a pod in namespace means: the pod's own namespace when the term has
// neither names nor a selector, else the named ones and those that the selector selects.
func OfTerm(t cluster.AffinityTerm, namespace string, all Namespaces) PodSelector {
	in := scope{t.Namespaces, t.NamespaceSelector}
	switch {
	case len(t.Namespaces) == 0 && t.NamespaceSelector == nil:
		in.names = []string{namespace}
	case !slices.IsSorted(t.Namespaces):
		in.names = slices.Sorted(slices.Values(t.Namespaces))
	}
	return PodSelector{Selector: t.Selector, within: []scope{in}, all: all}
}

// OfTerms returns the group that the required affinity terms of a pod in namespace mean together: kube-scheduler counts
// only pods that all of them select, whatever their keys.
func OfTerms(terms []cluster.AffinityTerm, namespace string, all Namespaces) (out PodSelector) {
	for i, t := range terms {
		if g := OfTerm(t, namespace, all); i == 0 {
			out = g
		} else {
			out = out.And(g)
		}
	}
	return out
}

// And is the group of the pods that belong to both.
func (g PodSelector) And(o PodSelector) PodSelector {
	out := PodSelector{within: slices.Concat(g.within, o.within), all: g.all}
	if g.Selector != nil && o.Selector != nil {
		rs := slices.Concat(g.Selector.Requirements, o.Selector.Requirements)
		slices.SortStableFunc(rs, func(a, b requirements.Requirement) int { return strings.Compare(a.Key, b.Key) })
		out.Selector = &cluster.Selector{Requirements: rs}
	}
	return out
}

// Selects reports whether a pod with these labels in namespace belongs to the group.
func (g PodSelector) Selects(namespace string, labels map[string]string) bool {
	return g.Covers(namespace) && g.Selector.Matches(labels)
}

// Covers reports whether pods of the namespace may belong to the group.
func (g PodSelector) Covers(namespace string) bool {
	return !slices.ContainsFunc(g.within, func(in scope) bool { return !g.contains(in, namespace) })
}

func (g PodSelector) contains(in scope, namespace string) bool {
	if _, named := slices.BinarySearch(in.names, namespace); named || in.selector == nil {
		return named
	}
	labels, exists := g.all()[namespace]
	return exists && in.selector.Matches(labels)
}

// OfOneNamespace is the namespace of all pods of the group, where it names no more than that one.
func (g PodSelector) OfOneNamespace() (name string, one bool) {
	if in := g.within; len(in) == 1 && len(in[0].names) == 1 && in[0].selector == nil {
		return in[0].names[0], true
	}
	return "", false
}

// ID is the group as text; equal texts mean equal groups.
func (g PodSelector) ID() string {
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
	return "|" + strings.Join(lists.Of(s.Requirements, func(r requirements.Requirement) string {
		return fmt.Sprintf("%s %t %t %q", r.Key, r.Not, r.Present, r.Values)
	}), "&")
}

// CountedNodes returns a pod that asks of nodes what they need for a spread of p to count them: what the policies of
// the spread honour of what p asks, and, of a required one, the labels of all required spreads. Every node has a name.
func CountedNodes(c cluster.Spread, p *cluster.Pod) cluster.Pod {
	asks := cluster.Pod{Tolerations: []cluster.Toleration{{Operator: "Exists"}}}
	if c.HonorTaints {
		asks.Tolerations = append(slices.Clone(p.Tolerations),
			cluster.Toleration{Operator: "Exists", Effect: "PreferNoSchedule"}) // which keeps no pod off
	}
	if !c.IgnoreNodeAffinity {
		asks.NodeSelector, asks.NodeAffinity = p.NodeSelector, p.NodeAffinity
	}
	var labels []requirements.Requirement
	for _, other := range p.Spread {
		if !other.Soft && !c.Soft && other.Key != c.Key && other.Key != corev1.LabelHostname {
			labels = append(labels, requirements.Any(other.Key))
		}
	}
	if len(labels) == 0 {
		return asks
	}
	alternatives := asks.NodeAffinity
	if len(alternatives) == 0 {
		alternatives = [][]requirements.Requirement{nil}
	}
	asks.NodeAffinity = nil
	for _, term := range alternatives {
		asks.NodeAffinity = append(asks.NodeAffinity, slices.Concat(term, labels))
	}
	return asks
}

// Spread is a spread constraint over numbered domains.
type Spread struct {
	MaxSkew    int
	MinDomains int
	Self       bool   // the constraint selects the pod that carries it
	Eligible   []bool // the domains that count for the least crowded one
}

// SpreadOf returns the constraint of the pod, with no domain eligible yet, and the pods that it counts.
func SpreadOf(c cluster.Spread, p *cluster.Pod) (Spread, PodSelector) {
	g := OfSpread(c, p.Namespace)
	return Spread{MaxSkew: int(c.MaxSkew), MinDomains: int(c.MinDomains), Self: g.Selects(p.Namespace, p.Labels)}, g
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

// Over returns the number of pods by which domain d would exceed the skew if more pods arrived there.
func (s Spread) Over(count []int, d, more int) int {
	return s.OverLeast(count[d], s.Least(count), more)
}

// OverLeast returns the number of pods by which a domain with that many would exceed the skew over the least crowded
// one if more arrived there.
func (s Spread) OverLeast(here, least, more int) int {
	if !s.Self {
		more = 0
	}
	return here + more - least - s.MaxSkew
}

// Room returns how many more pods a domain with that many takes: any number where the spread does not count them.
func (s Spread) Room(here, least int) int {
	switch over := s.OverLeast(here, least, 0); {
	case over > 0:
		return 0
	case s.Self:
		return -over
	}
	return math.MaxInt32
}

// AffinityAllows reports whether an affinity lets a pod into a domain with that many pods of its group: some are there,
// or none is anywhere and the pod belongs to the group itself, so that it may be the first.
func AffinityAllows(here int, anywhere, belongs bool) bool {
	return here > 0 || !anywhere && belongs
}
