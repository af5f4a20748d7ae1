package prices

import (
	"encoding/binary"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
)

// Reprice is what pods are worth of which so many are left, while that part of the hosts is empty. Solutions fill hosts
// in the same way again and again, so prices are remembered while some are empty. Once none is, hosts are left out.
func (p *ShadowPrices) Reprice(count []float64, hosts float64) packing.ClassValues {
	if !slices.ContainsFunc(p.Problem.Offers, isNodeThatIsThere) {
		return packing.ClassValues{Prices: p, USD: p.solver.Reprice(count, hosts, 0)}
	}
	if hosts == 0 {
		return p.repriceUnhosted(count)
	}
	var id []byte
	for _, n := range append(slices.Clip(count), hosts) {
		id = binary.LittleEndian.AppendUint64(id, math.Float64bits(n))
	}
	y, ok := p.repriced[string(id)]
	if !ok {
		y = p.solver.Reprice(count, hosts, 0)
		if p.repriced == nil {
			p.repriced = map[string][]float64{}
		}
		p.repriced[string(id)] = y
	}
	return packing.ClassValues{Prices: p, USD: y}
}

// isNodeThatIsThere reports whether the offer stands for nodes that are there, and cannot be bought.
func isNodeThatIsThere(o lowerbound.NodeOffer) bool { return o.Limit > 0 }

// moreFills is how often better fills of new nodes are looked for when pods are priced anew without hosts: the pods
// that hosts leave are others than those that the first fills were found for.
const moreFills = 2

// repriceUnhosted is what pods are worth of which so many are left, without hosts: of about half as many rows.
func (p *ShadowPrices) repriceUnhosted(count []float64) packing.ClassValues {
	if p.unhosted == nil {
		q := p.Problem
		q.Offers = slices.DeleteFunc(slices.Clone(q.Offers), isNodeThatIsThere)
		p.unhosted = lowerbound.NewSolver(q)
		p.unhosted.Solve()
	}
	return packing.ClassValues{Prices: p, USD: p.unhosted.Reprice(count, 0, moreFills)}
}
