package search

import (
	"cmp"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
)

// pricedStrategy is a strategy with the pricing that it packs by and that proves how good its solutions are.
type pricedStrategy struct {
	packing.Strategy
	pricing *prices.Pricing
	guide   *prices.ShadowPrices // solutions are improved by these, nil where none is
}

// pricedBy is the strategy with another pricing.
func (st pricedStrategy) pricedBy(px *prices.Pricing) pricedStrategy {
	st.Prices, st.pricing = px, px
	return st
}

// plainStrategy returns the strategy that is tried first: all pods at once, by their prices.
func plainStrategy(p *packing.Problem, px *prices.Pricing) pricedStrategy {
	st := packing.Strategy{NodeCost: cmp.Or(p.S.Rules.PerNodeOverheadUSD, defaultNodeCost)}
	return pricedStrategy{Strategy: st}.pricedBy(px)
}

// packByPrices packs everything by the prices of pods and, where the outcome leaves something to wish for, by the price
// of each pod's share of a node too. The second has to place as many pods for less.
func packByPrices(p *packing.Problem, st pricedStrategy) *packing.Solution {
	st.Guide = packing.ByShadowPrice
	first := p.Pack(st.Strategy)
	if first.Used.Opened == 0 || first.Used.Opened > fewNodes || st.pricing.IsNearBound(first, smallGap) {
		return first
	}
	st.Guide = packing.ByCostShare
	if second := p.Pack(st.Strategy); second.PlacesMoreOrCostsLess(first) {
		return second
	}
	return first
}

// withinLimits is the solution, or another with as few nodes as can be, where limits leave pods that fewer and larger
// nodes have room for.
func withinLimits(p *packing.Problem, s *packing.Solution, st pricedStrategy) *packing.Solution {
	if !s.MayBeLimited() || s.Used.Opened == 0 || s.Used.Opened > fewNodes || !s.IsShort() {
		return s
	}
	st.NodeCost = instancetypes.BeyondUSD
	if b := packByPrices(p, st); b.LeavesFewer(s) {
		b.Strategy.NodeCost = s.Strategy.NodeCost
		return b
	}
	return s
}

const (
	// fewNodes is the number of new nodes up to which it is worth while to try a second way of choosing them. Of many,
	// the first is better. Without the second way 10 of 1,500 random worlds place fewer pods.
	fewNodes = 120
	// smallGap is the gap to the lower bound, as a part of it, of a plan that is good enough. Half changes nothing but
	// the CPU, a tenth more; double costs 0.03 % more in the mean of the families of infra/lab/ablation.
	smallGap = rounding.Slight
	// defaultNodeCost is the cost of a node beside its price, in USD per hour, where the settings do not say.
	defaultNodeCost = 0.0002
)
