package prices

import (
	"encoding/binary"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/packing"
)

// Reprice returns the worth of pods of which so many are left, while that part of the hosts is empty. Solutions fill
// hosts in the same way again and again, so prices are remembered while some are empty.
func (p *ShadowPrices) Reprice(count []float64, hosts float64) packing.ClassValues {
	if hosts == 0 || !slices.ContainsFunc(p.Problem.Offerings, isNodeThatIsThere) {
		return packing.ClassValues{Prices: p, USD: p.solver.Reprice(count, hosts)}
	}
	var id []byte
	for _, n := range append(slices.Clip(count), hosts) {
		id = binary.LittleEndian.AppendUint64(id, math.Float64bits(n))
	}
	y, ok := p.repriced[string(id)]
	if !ok {
		y = p.solver.Reprice(count, hosts)
		if p.repriced == nil {
			p.repriced = map[string][]float64{}
		}
		p.repriced[string(id)] = y
	}
	return packing.ClassValues{Prices: p, USD: y}
}

// isNodeThatIsThere reports whether the offering stands for nodes that are there, and cannot be bought.
func isNodeThatIsThere(o cover.Offering) bool { return o.Limit > 0 }
