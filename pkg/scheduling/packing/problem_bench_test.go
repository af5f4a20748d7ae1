package packing_test

import (
	"testing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/testing/manypods"
)

func BenchmarkSurvey(b *testing.B) {
	s := manypods.Services(b, 10000)
	types := instancetypes.ResolveTypes(s.Catalog, s.Classes[0], nil, s.Now)
	b.ReportAllocs()
	for b.Loop() {
		packing.NewProblem(s, func(string) []instancetypes.Type { return types })
	}
}
