package prices_test

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/prices"
	"joiner.sh/pkg/testing/manypods"
)

func BenchmarkPrice(b *testing.B) {
	s := manypods.Services(b, 10000)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	p := packing.NewProblem(s, func(string) []instancetypes.Type { return types })
	b.ReportAllocs()
	for b.Loop() {
		prices.FindShadowPrices(p, func(class *podclass.Class) int { return len(class.Pods) }, false)
	}
}
