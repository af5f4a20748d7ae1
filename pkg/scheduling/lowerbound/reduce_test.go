package lowerbound

import (
	"testing"

	"joiner.sh/pkg/scheduling/cover"
)

// Where many classes have a limit on how many one node holds, those with most pods keep theirs.
func TestTheLargestClassesKeepTheirLimits(t *testing.T) {
	var p problem
	for _, pods := range []float64{5, 40, 30, 20, 10} {
		p.Classes = append(p.Classes, cover.Class{Count: pods, Most: 1})
	}
	p.Classes = append(p.Classes, cover.Class{Count: 100})
	for many, want := range map[int]int{2: 2, 4: 4, 5: 5, 9: 5} {
		kept := 0
		for _, c := range p.Classes {
			if c.Most > 0 && c.Count >= p.leastApart(many) {
				kept++
			}
		}
		if kept != want {
			t.Errorf("of %d that may keep their limits %d do", many, kept)
		}
	}
}
