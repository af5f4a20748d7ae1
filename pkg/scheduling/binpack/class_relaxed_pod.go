package binpack

import (
	"math"
	"slices"
)

// relaxedPod is a pod class at one step of relaxation.
type relaxedPod struct {
	class *podClass
	wish  constraints
	admit *nodeAdmission
	host  []topologyRule // on kubernetes.io/hostname
	other []topologyRule // on any other key, sorted by key

	together bool // its pods must all share one node
	unbound  bool // neither preferences that count it nor rules about nobody else tie it to a domain
}

// ruleKind is what a rule asks for.
type ruleKind int

// Kinds of rules.
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

// hasHostAffinity reports whether pods of the view want to be beside others on a node.
func (v *relaxedPod) hasHostAffinity() bool {
	return slices.ContainsFunc(v.host, func(r topologyRule) bool { return r.what == follow })
}

// followsOnHost reports whether pods of the view want to be on a node beside pods of the counter.
func (v *relaxedPod) followsOnHost(counter int) bool {
	return slices.ContainsFunc(v.host, func(r topologyRule) bool { return r.what == follow && r.counter == counter })
}

// hostLimit is how many pods of the counter a node may have for the scheduler to add one of the view.
func (v *relaxedPod) hostLimit(counter int) int {
	n := math.MaxInt32
	for _, r := range v.host {
		if r.what == spread && r.required && r.counter == counter {
			n = min(n, r.maxSkew)
		}
	}
	return n
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

// Ranks of classes, in the order in which they are divided over domains: those that others must keep away from or
// gather around come first.
const (
	rankApart  = iota // apart from others
	rankSpread        // evenly
	rankFree          // without a rule
	rankGather        // near each other
	rankFollow        // near others
)

// placementRank is when pods of the view are divided over domains.
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

// requiredAffinityRules are the rules of required affinity, which no relaxation takes away.
func (k *podClass) requiredAffinityRules() []topologyRule {
	v := k.lastRelaxation()
	return slices.DeleteFunc(slices.Concat(v.host, v.other),
		func(r topologyRule) bool { return r.what != follow || !r.required })
}

// pricedAs reports whether pods of the view are priced as those of the other view of the class.
func (v *relaxedPod) pricedAs(o *relaxedPod) bool {
	return v.admit == o.admit && slices.Equal(v.host, o.host) && slices.Equal(v.other, o.other)
}
