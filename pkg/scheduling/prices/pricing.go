package prices

import (
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// Pricing holds the prices of pods in one step of a pass. It does not change: a step that knows more makes another. It
// remembers what it was asked.
type Pricing struct {
	w      *packing.Problem
	Worth  *ShadowPrices                 // nil until the first new node is wanted
	Alone  *ShadowPrices                 // the same without the nodes that are there, where worth reckons with these
	proven map[*ShadowPrices]provenBound // by the prices that proved it; shared with those made of it
}

// provenBound is the bound that was proven for some pods.
type provenBound struct {
	placed []int // by class: how many of them
	usd    float64
}

// NewPricing has no prices until somebody asks.
func NewPricing(p *packing.Problem) *Pricing {
	return &Pricing{w: p, proven: map[*ShadowPrices]provenBound{}}
}

// WorthOf returns the prices of the pods for which the solution looks for new nodes: the first that asks decides how
// many of them there are.
func (px *Pricing) WorthOf(s *packing.Solution) packing.PodPrices {
	if px.Worth == nil {
		px.Worth = FindShadowPrices(px.w, func(class *podclass.Class) int { return len(s.Rest[class.ID]) }, false)
	}
	return px.Worth
}

// BesideHosts is the pricing of the pods that the solution places, with the nodes that are there.
func (px *Pricing) BesideHosts(s *packing.Solution) *Pricing {
	out := &Pricing{w: px.w, Alone: px.Worth, proven: px.proven}
	out.Worth = FindShadowPrices(px.w, func(class *podclass.Class) int {
		return len(class.Pods) - len(s.Rest[class.ID])
	}, true)
	return out
}

// CoverByWholeNodes returns cheap nodes that hold all pods of the problem, as far as so much work finds them.
func (px *Pricing) CoverByWholeNodes(p cover.Problem, work int) []cover.FleetNode {
	return lowerbound.CoverByWholeNodes(p, work)
}
