package lowerbound

import (
	"cmp"
	"math/bits"
	"slices"

	"joiner.sh/pkg/scheduling/cover"
)

// solver is one problem as it is worked on.
type solver struct {
	problem
	filler  *cover.KnapsackSolver
	m       *masterProblem
	differs []bool      // by resource: not all pods need the same
	most    [][]float64 // by offering and position: how many of the class fit
	basis   []cover.Basis
	near    []int32     // offerings to ask
	upper   []float64   // by offering: the most worth when last asked
	prices  [][]float64 // by offering: what resources and places on it were worth when its best fill was found
	over    []int32     // of those asked, the ones that could hold more worth than they cost
	limit   []int32     // by offering: the class that stands for how many there are, -1 for any number
}

// exchangeColumns are columns that cost nothing and let pods of one or two classes take the place of a pod of another
// class, where theirs together need no more and may be on every offering that the other may be on. In a fractional
// fleet that is always possible, so they change the cost little or not at all; but they tell at once how the prices of
// classes hang together, which columns of nodes tell only one after the other. What they are wrong about (that amounts
// on one node are whole, and the resources they leave out) Solve mends by going on without them. Bounds do not rest on
// them.
func (s *solver) exchangeColumns() []column {
	x, y := s.scarcestResources()
	if x == y {
		return nil
	}
	var order []int32
	for k, c := range s.Classes {
		if s.m.row[k] >= 0 && c.Need[x]+c.Need[y] > 0 {
			order = append(order, int32(k))
		}
	}
	slices.SortFunc(order, func(a, b int32) int {
		p, q := s.Classes[a].Need, s.Classes[b].Need
		return cmp.Or(cmp.Compare(p[y]*q[x], q[y]*p[x]), cmp.Compare(p[x]+p[y], q[x]+q[y]), cmp.Compare(a, b))
	})
	on := s.offeringsOf()
	var out []column
	for at, j := range order {
		below, above := int32(-1), int32(-1)
		for i := at - 1; i >= 0 && below < 0; i-- {
			if s.canReplace(order[i], j, on) {
				below = order[i]
			}
		}
		for i := at + 1; i < len(order) && above < 0; i++ {
			if s.canReplace(order[i], j, on) {
				above = order[i]
			}
		}
		for _, i := range []int32{below, above} {
			if i >= 0 {
				out = append(out, column{class: []int32{i, j}, amount: []float64{s.replacementShare(i, j), -1}})
			}
		}
		if below >= 0 && above >= 0 {
			p, q, n := s.Classes[below].Need, s.Classes[above].Need, s.Classes[j].Need
			det := p[x]*q[y] - p[y]*q[x]
			t, u := (n[x]*q[y]-n[y]*q[x])/det, (p[x]*n[y]-p[y]*n[x])/det
			if min(det, t, u) > tolerance && s.needCovers(j, [2]int32{below, above}, [2]float64{t, u}) {
				out = append(out, column{class: []int32{below, above, j}, amount: []float64{t, u, -1}})
			}
		}
	}
	return slices.DeleteFunc(out, func(c column) bool { return c.amount[0] <= tolerance })
}

// needCovers reports whether what a pod of class j needs is enough for the parts of the others, in every resource of
// which pods need different amounts.
func (s *solver) needCovers(j int32, others [2]int32, parts [2]float64) bool {
	for r, has := range s.Classes[j].Need {
		a, b := s.Classes[others[0]].Need[r], s.Classes[others[1]].Need[r]
		if s.differs[r] && parts[0]*a+parts[1]*b > has+tolerance*(1+has) {
			return false
		}
	}
	return true
}

// offeringsOf are, by class, the offerings it may be on, as bits.
func (s *solver) offeringsOf() [][]uint {
	words := (len(s.Offerings) + bits.UintSize - 1) / bits.UintSize
	out := make([][]uint, len(s.Classes))
	for k := range out {
		out[k] = make([]uint, words)
	}
	for i, o := range s.Offerings {
		for _, k := range o.Holds {
			out[k][i/bits.UintSize] |= 1 << (i % bits.UintSize)
		}
	}
	return out
}

// canReplace reports whether pods of class i may be wherever pods of class j may be.
func (s *solver) canReplace(i, j int32, on [][]uint) bool {
	a, b := s.Classes[i], s.Classes[j]
	if a.Group >= 0 && a.Group != b.Group || a.Most > 0 {
		return false
	}
	for w, word := range on[j] {
		if word&^on[i][w] != 0 {
			return false
		}
	}
	return true
}

// replacementShare returns how many pods of class i need no more than one of class j.
func (s *solver) replacementShare(i, j int32) float64 {
	t := plenty
	for r, x := range s.Classes[i].Need {
		if x > 0 && s.offeringsVary(r) {
			t = min(t, s.Classes[j].Need[r]/x)
		}
	}
	return t
}
