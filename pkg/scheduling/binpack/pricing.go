package binpack

import "joiner.sh/pkg/scheduling/podclass"

// pricing is what pods are worth in one step of a pass. It does not change: a step that knows more makes another. It
// remembers what it was asked.
type pricing struct {
	w      *problem
	worth  *shadowPrices                 // nil until the first new node is wanted
	alone  *shadowPrices                 // the same without the nodes that are there, where worth reckons with these
	raised *shadowPrices                 // the same with whole pods on nodes that are there, nil for none
	guide  *shadowPrices                 // of pods as far as a solution keeps what they prefer, nil until asked
	proven map[*shadowPrices]provenBound // by the prices that proved it; shared with those made of it
}

func newPricing(w *problem) *pricing {
	return &pricing{w: w, proven: map[*shadowPrices]provenBound{}}
}

// worthOf is what pods are worth for whose new nodes the solution looks: the first that asks decides how many of them
// there are.
func (px *pricing) worthOf(a *solution) podPrices {
	if px.worth == nil {
		px.worth = findShadowPrices(px.w, func(k *podclass.Class) int { return len(a.rest[k.ID]) }, false)
	}
	return px.worth
}

// besideHosts is the pricing of the pods that the solution places, with the nodes that are there.
func (px *pricing) besideHosts(a *solution) *pricing {
	out := &pricing{w: px.w, alone: px.worth, proven: px.proven}
	out.worth = findShadowPrices(px.w, func(k *podclass.Class) int { return len(k.Pods) - len(a.rest[k.ID]) }, true)
	return out
}

// withRaised is the pricing with these raised prices.
func (px *pricing) withRaised(raised *shadowPrices) *pricing {
	out := *px
	out.raised = raised
	return &out
}

// withWorth is the pricing with these prices instead of its own.
func (px *pricing) withWorth(worth *shadowPrices) *pricing {
	out := *px
	out.worth = worth
	return &out
}

// guidePrices are the prices by which solutions are improved, nil until one was.
func (px *pricing) guidePrices() podPrices {
	if px.guide == nil {
		return nil
	}
	return px.guide
}
