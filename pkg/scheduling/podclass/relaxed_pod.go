package podclass

import (
	"joiner.sh/pkg/model/lists"
	"math"
	"slices"
)

// RelaxedPod is a pod class at one step of relaxation.
type RelaxedPod struct {
	Class       *Class         // whose pods it is
	Wish        Constraints    // the required constraints, and the preferences that are still rules
	Admission   *Admission     // of Wish, to nodes in any domain
	HostRules   []TopologyRule // on kubernetes.io/hostname
	DomainRules []TopologyRule // on any other key, sorted by key

	Together bool // its pods must all share one node
	Unbound  bool // neither preferences that count it nor rules about nobody else tie it to a domain
}

// ruleKind tells spread, anti-affinity and affinity apart.
type ruleKind int

// Kinds of rules.
const (
	Spread ruleKind = iota
	Avoid
	Follow // affinity
)

// TopologyRule is one spread, affinity or anti-affinity term of a view.
type TopologyRule struct {
	Kind       ruleKind // Spread, Avoid or Follow
	Key        string   // topology key, canonical
	Counter    int      // index of the pods it counts in podtopology.Counts.Counters
	Self       bool     // it selects the pods that carry it
	Required   bool     // it is no preference; others that a required anti-affinity selects keep away too
	MaxSkew    int      // of a spread, in pods; 0 for affinity and anti-affinity
	MinDomains int      // minDomains
}

// HasHostAffinity reports whether pods of the view want to be beside others on a node.
func (pod *RelaxedPod) HasHostAffinity() bool {
	return slices.ContainsFunc(pod.HostRules, func(r TopologyRule) bool { return r.Kind == Follow })
}

// FollowsOnHost reports whether pods of the view want to be on a node beside pods of the counter.
func (pod *RelaxedPod) FollowsOnHost(counter int) bool {
	return slices.ContainsFunc(pod.HostRules,
		func(r TopologyRule) bool { return r.Kind == Follow && r.Counter == counter })
}

// HostLimit returns the number of pods of the counter that a node may have for the scheduler to add one of the view.
func (pod *RelaxedPod) HostLimit(counter int) int {
	n := math.MaxInt32
	for _, r := range pod.HostRules {
		if r.Kind == Spread && r.Required && r.Counter == counter {
			n = min(n, r.MaxSkew)
		}
	}
	return n
}

// RulesFor returns the rules of the view for the key.
func (pod *RelaxedPod) RulesFor(key string) []TopologyRule {
	return lists.Where(pod.DomainRules, func(r TopologyRule) bool { return r.Key == key })
}

// RequiredAffinityRules are the rules of required affinity, which no relaxation takes away.
func (class *Class) RequiredAffinityRules() []TopologyRule {
	pod := class.LastRelaxation()
	return slices.DeleteFunc(slices.Concat(pod.HostRules, pod.DomainRules),
		func(r TopologyRule) bool { return r.Kind != Follow || !r.Required })
}

// PricedAs reports whether pods of the view are priced as those of the other view of the class.
func (pod *RelaxedPod) PricedAs(o *RelaxedPod) bool {
	return pod.Admission == o.Admission && slices.Equal(pod.HostRules, o.HostRules) &&
		slices.Equal(pod.DomainRules, o.DomainRules)
}
