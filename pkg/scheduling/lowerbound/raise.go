package lowerbound

import (
	"math"
	"slices"
)

const (
	// limitedFills caps the branch-and-bound steps of the search for the best fill of whole pods on an offer of
	// limited capacity.
	limitedFills = 3000
	// thoroughFills is the same at most, and timesAsThorough how many times as many steps it takes each time that
	// nothing but better fills could prove more.
	thoroughFills, timesAsThorough = 12_000, 4
	// quickFills is the same while prices are far from right and most offers find something better at each of them.
	quickFills = 300
	// closeToBest is the part of the best prices so far in those that are tried next, half of what it was after each
	// that proved more.
	closeToBest = 0.7
	// leastGain is what another fill of an offer has to gain at least, in USD per hour, and a millionth of its worth.
	leastGain = 1e-8
	// leastImproving is how much work an improvement of the fractional fleet may take at least.
	leastImproving = 20_000_000
	// lowerings is how often prices are lowered where offers hold too much worth, before all prices are.
	lowerings = 3
	// quickShare is the part of the work after which fills are looked for thoroughly, whatever is found.
	quickShare = 0.75
)

// RaisedBound is the outcome of RaiseBound.
type RaisedBound struct {
	ClassPrices
	Worth []float64 // by offer with a limit: no fill of whole pods is worth more
	Work  int       // that it took

	problem *limitedProblem
}

// LimitedFill is how many pods of which classes one offer holds.
type LimitedFill struct {
	Class  []int32
	Amount []int
}

// PlannedNode is what a node of a plan holds: a new one at its price, or one of an offer with a limit.
type PlannedNode struct {
	LimitedFill
	Price float64
	Offer int // index of the offer, of a node that has no price
}

// RaiseBound looks for prices that prove more than those given, because every offer holds whole pods, also one of which
// there are so many. The outcome is valid after any amount of work, of which one unit takes about a nanosecond. It has
// no Fill. The bound is the sum of count times value, less the worth of the offers that have a limit.
//
// It begins with the nodes of a plan, which may be none: without them it takes many rounds to come near to the right
// prices.
func RaiseBound(p CoverProblem, value []float64, plan []PlannedNode, work int) RaisedBound {
	g := newLimitedProblem(p)
	g.addPlan(plan)
	g.limitWork(work)
	g.m.perturbDemand()
	pure := g.m.classValues(g.filler.Value)
	copy(g.filler.Value, value)
	best := RaisedBound{ClassPrices: ClassPrices{Bound: math.Inf(-1), Least: g.m.fleetCost()}, problem: g}
	best.runRounds(pure, len(value), work)
	return best
}

// RaiseFurther does so much more work, with another plan beside all that was found so far.
func (b *RaisedBound) RaiseFurther(plan []PlannedNode, work int) {
	g := b.problem
	g.addPlan(plan)
	g.limitWork(b.Work + work)
	g.m.improveBasis()
	b.Least = g.m.fleetCost()
	pure := g.m.classValues(g.filler.Value)
	mixInto(g.filler.Value, b.Value, closeToBest)
	b.runRounds(pure, len(b.Value), b.Work+work)
}

// runRounds tries prices, first the filler's, until it has done so much work or others would not prove more.
func (b *RaisedBound) runRounds(pure []float64, classes, work int) {
	g := b.problem
	for mix := closeToBest; ; {
		b.Rounds++
		g.limitWork(work)
		exact := g.patience >= limitedFills
		g.cut = 0
		added := g.tryPrices(pure)
		higher := b.keepHigher(g, classes)
		g.m.refactorBasis()
		g.m.improveBasis()
		b.Least = g.m.fleetCost()
		if b.Work = g.work + g.m.work; b.Work > work || b.Least-b.Bound <= wholeEnough*b.Bound {
			return
		}
		if exact && added == 0 && mix == 0 {
			if g.cut == 0 || g.patience >= thoroughFills {
				return
			}
			g.patience *= timesAsThorough
		}
		if 2*added < len(g.limited) || float64(b.Work) > quickShare*float64(work) {
			g.patience = max(g.patience, limitedFills)
		}
		switch {
		case added == 0:
			mix = 0 // the best prices so far held it back
		case higher:
			mix /= 2
		default:
			mix = closeToBest
		}
		pure = g.m.classValues(g.filler.Value)
		mixInto(g.filler.Value, b.Value, mix)
	}
}

// limitWork has the master improve nothing more once all work is done, but for leastImproving.
func (g *limitedProblem) limitWork(all int) {
	g.m.most = max(g.m.work, all-g.work) + leastImproving
}

// mixInto makes the values the mean of themselves and others, of which they get that part.
func mixInto(v, others []float64, part float64) {
	for i, x := range others {
		v[i] = (1-part)*v[i] + part*x
	}
}

// keepHigher keeps the filler's values of so many classes if they prove more, and reports whether they do.
func (b *RaisedBound) keepHigher(g *limitedProblem, classes int) bool {
	bound := g.totalWorth()
	if bound <= b.Bound {
		return false
	}
	b.Bound, b.Value, b.Worth = bound, slices.Clone(g.filler.Value[:classes]), slices.Clone(g.fill)
	return true
}

// limitedProblem is a problem in which each offer with a limit has columns of its own, and no row.
type limitedProblem struct {
	*wholePodProblem
	limited []int   // indexes of the offers with a limit that are looked at
	at      []int32 // by offer: which limited offer of the master problem it is, -1 for none
	choices []anyOfChoice
}

func newLimitedProblem(p CoverProblem) *limitedProblem {
	g := &limitedProblem{at: make([]int32, len(p.Offers))}
	for i, o := range p.Offers {
		if g.at[i] = -1; o.Limit > 0 {
			g.at[i] = int32(len(g.limited))
			g.limited = append(g.limited, i)
		}
	}
	dims := len(p.Classes[0].Need)
	g.wholePodProblem = newWholePodProblem(newSolverWith(p, g.at, dims), quickFills)
	g.glance = true
	g.m.pricing.absolute = true
	for _, i := range g.limited {
		g.m.addLimited(p.Offers[i].Limit)
	}
	g.addChoices()
	return g
}

// coverAsOthers has the classes that are any of others covered like one of those, alone.
func (p *CoverProblem) coverAsOthers(alone []column) []column {
	for k, c := range p.Classes {
		for _, other := range c.AnyOf {
			if alone[k].amount == nil && alone[other].amount != nil {
				alone[k] = alone[other]
				alone[k].class = []int32{int32(k)}
			}
		}
	}
	return alone
}

// valueAnyOf values pods that are any of some classes as those of the classes that are worth least, on an average.
func (g *limitedProblem) valueAnyOf() {
	v := g.filler.Value
	for k, c := range g.Classes {
		if len(c.AnyOf) == 0 || c.Count <= 0 {
			continue
		}
		var values []float64
		for _, other := range c.AnyOf {
			values = append(values, v[other])
		}
		slices.Sort(values)
		sum, left := 0.0, c.Count
		for i, x := range values {
			here := left
			if c.Each > 0 && i+1 < len(values) {
				here = min(left, c.Each)
			}
			sum += here * x
			left -= here
		}
		v[k] = sum / c.Count
	}
}

// addPlan gives the master what the nodes of the plan hold.
func (g *limitedProblem) addPlan(plan []PlannedNode) {
	for _, x := range plan {
		c := column{cost: x.Price}
		if x.Price == 0 {
			c.of = g.at[x.Offer] + 1
		}
		for j, k := range x.Class {
			if g.m.row[k] >= 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, float64(x.Amount[j]))
			}
		}
		if len(c.class) > 0 {
			g.m.addColumn(c)
		}
	}
}

// tryPrices lowers the filler's values until no offer can hold more worth than it costs, and finds what those with a
// limit are worth then. It gives the master the fills that would pay at the pure values and returns how many did.
func (g *limitedProblem) tryPrices(pure []float64) (added int) {
	for range lowerings {
		more, over := g.tryOffers(pure)
		if added += more; !over {
			break
		}
	}
	for i := range g.Offers {
		if o := &g.Offers[i]; o.Limit == 0 {
			g.fill[i] = g.fillOf(o, i, o.Price)
		}
	}
	g.scaleValues()
	g.valueAnyOf()
	for _, i := range g.limited {
		if g.tryLimited(i, pure) {
			added++
		}
	}
	return added
}

// totalWorth is what all pods are worth at the filler's values, beyond what the offers with a limit can hold.
func (g *limitedProblem) totalWorth() float64 {
	sum := g.solver.totalWorth()
	for _, i := range g.limited {
		sum -= g.Offers[i].Limit * g.fill[i]
	}
	return sum
}

// tryOffers finds the best fill of each offer without a limit and lowers the values of what holds too much worth. It
// reports how many columns are new, and whether it lowered any value.
func (g *limitedProblem) tryOffers(pure []float64) (added int, over bool) {
	v := g.filler.Value
	for i := range g.Offers {
		o := &g.Offers[i]
		if o.Limit > 0 {
			continue
		}
		upper := g.fillOf(o, i, o.Price)
		g.countFill(o)
		if upper <= o.Price {
			continue
		}
		over = true
		c, gain := column{cost: o.Price}, 0.0
		for j, n := range g.best {
			if k := g.items[j].class; n > 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, float64(n))
				gain += float64(n) * pure[k]
				v[k] *= o.Price / upper
			}
		}
		if gain > o.Price*(1+1e-7) {
			g.m.addColumn(c)
			added++
		}
	}
	return added, over
}

// workPerGlance, workPerClass and workPerTry are how much work it is to see that a class cannot pay, to look at it
// closely and to try a number of its pods.
const workPerGlance, workPerClass, workPerTry = 10, 200, 30

// countFill adds the work that it took to find the last fill, of the offer.
func (g *limitedProblem) countFill(o *NodeOffer) {
	if g.proven {
		g.work += workPerGlance * len(o.Holds)
		return
	}
	g.work += workPerClass*len(o.Holds) + workPerTry*g.steps
}

// tryLimited finds the best fill of an offer with a limit; false when it would not pay at the pure values.
func (g *limitedProblem) tryLimited(i int, pure []float64) bool {
	o := &g.Offers[i]
	g.fill[i] = g.fillOf(o, i, 0)
	g.countFill(o)
	c, gain := column{of: g.at[i] + 1}, 0.0
	for j, pods := range g.best {
		if k := g.items[j].class; pods > 0 {
			c.class, c.amount = append(c.class, k), append(c.amount, float64(pods))
			gain += float64(pods) * pure[k]
		}
	}
	gain -= g.m.keys.worthOf(g.m, &c, func(k int32) float64 { return pure[k] })
	if len(c.class) == 0 || gain <= leastGain+1e-6*g.fill[i] {
		return false
	}
	g.m.addColumn(c)
	return true
}
