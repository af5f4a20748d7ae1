package search

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/testing/manypods"
)

func BenchmarkSearch(b *testing.B) {
	s := manypods.Services(b, 3000)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	sells := func(string) []instancetypes.Type { return types }
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		p := packing.NewProblem(s, sells)
		st := plainStrategy(p, prices.NewPricing(p))
		solution := packByPrices(p, st)
		st.guide = st.pricing.GuidePricesFor(solution)
		b.StartTimer()
		improveByLocalSearch(solution, st, searchLimit{steps: 200})
	}
}
