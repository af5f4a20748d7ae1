package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/lowerbound"
)

// newNodePart is pods of a price class that need new nodes in any plan: the room there is holds too few of the class
// even where it holds nothing else. One node holds at most all of them, so large nodes are of less use. They are priced
// as a class of their own that no node that is there can hold.
type newNodePart struct {
	class  int32
	hosted float64 // most pods of the class that the room there is holds
	count  float64
	price  float64 // what one of them is worth
}

// newNodeParts are the parts of the classes, of each of which so many pods have a place in any plan, that need new
// nodes and are fewer than a node could hold. A class of which nodes that are there hold nothing needs no part.
func (x *shadowPrices) newNodeParts(w *problem, counts []float64) (out []newNodePart) {
	for i, n := range counts {
		if n = min(n, x.problem.Classes[i].Count); n == 0 || x.problem.Classes[i].Most > 0 {
			continue
		}
		hosted := mostInFreeRoom(w, &x.classes[i], n)
		if 0 < hosted && hosted < n && n-hosted < x.mostOnNewNode(int32(i)) {
			out = append(out, newNodePart{class: int32(i), hosted: hosted, count: n - hosted})
		}
	}
	return out
}

// mostInFreeRoom is how many pods of the class the nodes that are there hold at most together, as far as it is less
// than enough. Reservations and commitments are taken to hold enough.
func mostInFreeRoom(w *problem, c *priceClass, enough float64) float64 {
	for _, p := range w.catalog.Pools {
		if len(p.Reserved)+len(p.Paid) > 0 {
			return enough
		}
	}
	sum := 0.0
	for _, b := range w.nodes.Hosts {
		if n := capacity.FitCount(c.need, b.Room); n > 0 && b.AlternativeFor(c.admit) >= 0 {
			if sum += float64(n); sum >= enough {
				return enough
			}
		}
	}
	return sum
}

// mostOnNewNode is how many pods of the class the largest node holds, fractions allowed.
func (x *shadowPrices) mostOnNewNode(class int32) float64 {
	most := 0.0
	for i := range x.problem.Offers {
		o := &x.problem.Offers[i]
		if o.Limit > 0 || !slices.Contains(o.Holds, class) {
			continue
		}
		n := math.Inf(1)
		for r, need := range x.problem.Classes[class].Need {
			if need > 0 {
				n = min(n, o.Room[r]/need)
			}
		}
		most = max(most, n)
	}
	return most
}

// valuesWithParts are the values of the classes and of the parts.
func valuesWithParts(values []float64, parts []newNodePart) []float64 {
	for _, part := range parts {
		values = append(values, values[part.class])
	}
	return values
}

// splitClasses makes classes of their own of the parts, after those that the problem has.
func splitClasses(p *lowerbound.CoverProblem, parts []newNodePart) {
	for _, part := range parts {
		p.Classes[part.class].Count -= part.count
		own := p.Classes[part.class]
		own.Count, own.Most = part.count, part.count
		p.Classes = append(p.Classes, own)
		for j := range p.Offers {
			if o := &p.Offers[j]; o.Limit == 0 && slices.Contains(o.Holds, part.class) {
				o.Holds = append(slices.Clip(o.Holds), int32(len(p.Classes)-1))
			}
		}
	}
}

// splitPlan takes the plan's pods on new nodes for pods of the parts, which are classes from the first on.
func splitPlan(plan []lowerbound.PlannedNode, parts []newNodePart, first int) {
	for i, part := range parts {
		left := int(part.count)
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
func (x *shadowPrices) extraWorth(counts []float64) float64 {
	sum := 0.0
	for _, p := range x.parts {
		sum += max(0, min(p.count, counts[p.class]-p.hosted)) * max(0, p.price-x.prices.Value[p.class])
	}
	return sum
}

// countAtLeast counts the pods that the plan places by class: those that spread, as many in each domain as must be
// there, whatever the plan. It returns the others as classes of their own, one for each class of pods.
func (p *shadowPrices) countAtLeast(plan *solution) (counts []float64, anyOf []lowerbound.PriceClass,
	of []looseClass) {
	counts = make([]float64, len(p.classes))
	for i, k := range plan.w.classes.List {
		x := p.members[i]
		placed := len(k.Pods) - len(plan.rest[i])
		loose, _ := x.addMinimumCounts(placed, p.prices.Value, counts)
		if loose > 0 {
			of = append(of, looseClass{i, x.leastInDomain(placed)})
			anyOf = append(anyOf, lowerbound.PriceClass{Need: p.problem.Classes[x.tied[0]].Need, Count: float64(loose),
				Group: -1, AnyOf: x.tied, Each: float64(x.mostLoose(placed))})
		}
	}
	return counts, anyOf, of
}

// looseClass is pods of a class that spread and may be in any of their domains, beside those of which each domain has
// so many at least.
type looseClass struct{ class, least int }
