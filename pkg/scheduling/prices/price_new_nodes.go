package prices

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
)

// NewNodePart is pods of a price class that need new nodes in any plan: the room there is holds too few of the class
// even where it holds nothing else. One node holds at most all of them, so large nodes are of less use. They are priced
// as a class of their own that no node that is there can hold.
type NewNodePart struct {
	class  int32
	Hosted float64 // most pods of the class that the room there is holds
	Count  float64
	Price  float64 // what one of them is worth
}

// NewNodeParts are the parts of the classes, of each of which so many pods have a place in any plan, that need new
// nodes and are fewer than a node could hold. A class of which nodes that are there hold nothing needs no part.
func (x *ShadowPrices) NewNodeParts(w *packing.Problem, counts []float64) (out []NewNodePart) {
	for i, n := range counts {
		if n = min(n, x.Problem.Classes[i].Count); n == 0 || x.Problem.Classes[i].Most > 0 {
			continue
		}
		hosted := mostInFreeRoom(w, &x.Classes[i], n)
		if 0 < hosted && hosted < n && n-hosted < x.mostOnNewNode(int32(i)) {
			out = append(out, NewNodePart{class: int32(i), Hosted: hosted, Count: n - hosted})
		}
	}
	return out
}

// mostInFreeRoom is how many pods of the class the nodes that are there hold at most together, as far as it is less
// than enough. Reservations and commitments are taken to hold enough.
func mostInFreeRoom(w *packing.Problem, c *priceClass, enough float64) float64 {
	for _, p := range w.Catalog.Pools {
		if len(p.Reserved)+len(p.Paid) > 0 {
			return enough
		}
	}
	sum := 0.0
	for _, b := range w.Nodes.Hosts {
		if n := capacity.FitCount(c.need, b.Room); n > 0 && b.AlternativeFor(c.admit) >= 0 {
			if sum += float64(n); sum >= enough {
				return enough
			}
		}
	}
	return sum
}

// mostOnNewNode is how many pods of the class the largest node holds, fractions allowed.
func (x *ShadowPrices) mostOnNewNode(class int32) float64 {
	most := 0.0
	for i := range x.Problem.Offers {
		o := &x.Problem.Offers[i]
		if o.Limit > 0 || !slices.Contains(o.Holds, class) {
			continue
		}
		n := math.Inf(1)
		for r, need := range x.Problem.Classes[class].Need {
			if need > 0 {
				n = min(n, o.Room[r]/need)
			}
		}
		most = max(most, n)
	}
	return most
}

// ValuesWithParts are the values of the classes and of the parts.
func ValuesWithParts(values []float64, parts []NewNodePart) []float64 {
	for _, part := range parts {
		values = append(values, values[part.class])
	}
	return values
}

// SplitClasses makes classes of their own of the parts, after those that the problem has.
func SplitClasses(p *lowerbound.CoverProblem, parts []NewNodePart) {
	for _, part := range parts {
		p.Classes[part.class].Count -= part.Count
		own := p.Classes[part.class]
		own.Count, own.Most = part.Count, part.Count
		p.Classes = append(p.Classes, own)
		for j := range p.Offers {
			if o := &p.Offers[j]; o.Limit == 0 && slices.Contains(o.Holds, part.class) {
				o.Holds = append(slices.Clip(o.Holds), int32(len(p.Classes)-1))
			}
		}
	}
}

// SplitPlan takes the plan's pods on new nodes for pods of the parts, which are classes from the first on.
func SplitPlan(plan []lowerbound.PlannedNode, parts []NewNodePart, first int) {
	for i, part := range parts {
		left := int(part.Count)
		for j := range plan {
			x := &plan[j]
			if at := slices.Index(x.Class, part.class); x.Price > 0 && at >= 0 {
				n := min(left, x.Amount[at])
				x.Amount[at] -= n
				x.Class, x.Amount, left = append(x.Class, int32(first+i)), append(x.Amount, n), left-n
			}
		}
	}
}

// extraWorth is by how much more the parts are worth than as many other pods of their classes, of each of which so many
// have a place.
func (x *ShadowPrices) extraWorth(counts []float64) float64 {
	sum := 0.0
	for _, p := range x.Parts {
		sum += max(0, min(p.Count, counts[p.class]-p.Hosted)) * max(0, p.Price-x.Prices.Value[p.class])
	}
	return sum
}

// CountAtLeast counts the pods that the plan places by class: those that spread, as many in each domain as must be
// there, whatever the plan. It returns the others as classes of their own, one for each class of pods.
func (x *ShadowPrices) CountAtLeast(plan *packing.Solution) (counts []float64, anyOf []lowerbound.PriceClass,
	of []LooseClass) {
	counts = make([]float64, len(x.Classes))
	for i, k := range plan.W.Classes.List {
		m := x.Members[i]
		placed := len(k.Pods) - len(plan.Rest[i])
		loose, _ := m.addMinimumCounts(placed, x.Prices.Value, counts)
		if loose > 0 {
			of = append(of, LooseClass{i, m.leastInDomain(placed)})
			anyOf = append(anyOf, lowerbound.PriceClass{Need: x.Problem.Classes[m.tied[0]].Need, Count: float64(loose),
				Group: -1, AnyOf: m.tied, Each: float64(m.mostLoose(placed))})
		}
	}
	return counts, anyOf, of
}

// LooseClass is pods of a class that spread and may be in any of their domains, beside those of which each domain has
// so many at least.
type LooseClass struct{ Class, Least int }
