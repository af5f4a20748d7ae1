package prices

import (
	"math"
	"testing"

	"joiner.sh/pkg/scheduling/podtopology"
)

// Pods that spread: of all ways to divide them over the domains that the skew allows, the cheapest costs what
// addMinimumCounts says.
func TestPodsThatSpreadAreReckonedWithAtTheirCheapest(t *testing.T) {
	value := []float64{3, 1, 4, 2}
	for domains := 2; domains <= 4; domains++ {
		for n := 1; n <= 9; n++ {
			for skew := 1; skew <= 3; skew++ {
				membership := classMembership{EvenSplit: podtopology.EvenSplit{Key: "zone", Domains: make([]string, domains), Skew: skew}}
				for d := range domains {
					membership.tied = append(membership.tied, int32(d))
				}
				cheapest := math.Inf(1)
				divisions(n, domains, nil, func(parts []int) {
					low, high, cost := n, 0, 0.0
					for d, m := range parts {
						low, high, cost = min(low, m), max(high, m), cost+float64(m)*value[d]
					}
					if high-low <= skew {
						cheapest = min(cheapest, cost)
					}
				})
				counts := make([]float64, domains)
				loose, each := membership.addMinimumCounts(n, value, counts)
				got := float64(loose) * each
				for d, m := range counts {
					got += m * value[d]
				}
				if math.Abs(got-cheapest) > 1e-9 {
					t.Errorf("%d pods over %d domains with skew %d cost at least %v, want %v", n, domains, skew, got, cheapest)
				}
			}
		}
	}
}

// divisions goes through all ways to divide n over so many domains.
func divisions(n, domains int, parts []int, do func([]int)) {
	if domains == 1 {
		do(append(parts, n))
		return
	}
	for m := 0; m <= n; m++ {
		divisions(n-m, domains-1, append(parts[:len(parts):len(parts)], m), do)
	}
}
