package lowerbound

import (
	"math"
	"slices"
)

const (
	// mostLimitGroups is how many groups the offers are put into of which there are so many.
	mostLimitGroups = 32
	// limitedFills bounds the steps in which the best fill of whole pods is looked for on an offer of which there are
	// so many.
	limitedFills = 3000
	// quickFills is the same while prices are far from right and most groups find something better at each of them.
	quickFills = 300
	// closeToBest is the part of the best prices so far in those that are tried next, half of what it was after each
	// that proved more.
	closeToBest = 0.5
	// lowerings is how often prices are lowered where offers hold too much worth, before all prices are.
	lowerings = 3
	// quickShare is the part of the work after which fills are looked for thoroughly, whatever groups find.
	quickShare = 0.75
)

// RaisedBound is the outcome of RaiseBound.
type RaisedBound struct {
	ClassPrices
	Worth []float64 // by offer with a limit: no fill of whole pods is worth more
	Work  int       // that it took

	groups *limitGroups
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
// It takes the offers with a limit group by group, so that few rows stand for many nodes: a column says what each
// offer of the group holds at one set of prices. A mixture of such columns is a mixture of fills of each offer, so
// the prices of this smaller problem are as good as those of a problem with a row for each offer. It begins with the
// nodes of a plan, which may be none: without them it takes many rounds to come near to the right prices.
func RaiseBound(p CoverProblem, value []float64, plan []PlannedNode, work int) RaisedBound {
	g := newLimitGroups(p)
	g.addPlan(plan)
	g.m.perturbDemand()
	pure := g.m.classValues(g.filler.Value)
	copy(g.filler.Value, value)
	best := RaisedBound{ClassPrices: ClassPrices{Bound: math.Inf(-1), Least: g.m.fleetCost()}, groups: g}
	best.runRounds(pure, len(value), work)
	return best
}

// RaiseFurther does so much more work, with another plan beside all that was found so far.
func (b *RaisedBound) RaiseFurther(plan []PlannedNode, work int) {
	g := b.groups
	g.addPlan(plan)
	g.m.improveBasis()
	b.Least = g.m.fleetCost()
	pure := g.m.classValues(g.filler.Value)
	mixInto(g.filler.Value, b.Value, closeToBest)
	b.runRounds(pure, len(b.Value), b.Work+work)
}

// runRounds tries prices, first the filler's, until it has done so much work or others would not prove more.
func (b *RaisedBound) runRounds(pure []float64, classes, work int) {
	g := b.groups
	for mix := closeToBest; ; {
		b.Rounds++
		exact := g.patience == limitedFills
		added := g.tryPrices(pure)
		higher := b.keepHigher(g, classes)
		g.m.refactorBasis()
		g.m.improveBasis()
		b.Least = g.m.fleetCost()
		if b.Work = g.work + g.m.work; b.Work > work || b.Least-b.Bound <= wholeEnough*b.Bound ||
			exact && added == 0 && mix == 0 {
			return
		}
		if 2*added < len(g.members) || float64(b.Work) > quickShare*float64(work) {
			g.patience = limitedFills
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

// mixInto makes the values the mean of themselves and others, of which they get that part.
func mixInto(v, others []float64, part float64) {
	for i, x := range others {
		v[i] = (1-part)*v[i] + part*x
	}
}

// keepHigher keeps the filler's values of so many classes if they prove more, and reports whether they do.
func (b *RaisedBound) keepHigher(g *limitGroups, classes int) bool {
	bound := g.totalWorth()
	if bound <= b.Bound {
		return false
	}
	b.Bound, b.Value, b.Worth = bound, slices.Clone(g.filler.Value[:classes]), slices.Clone(g.fill)
	return true
}

// limitGroups is a problem in which offers with a limit are taken together, group by group.
type limitGroups struct {
	*wholePodProblem
	members [][]int         // by group: its offers
	first   int32           // the class that stands for the first group; others follow
	columns []limitedColumn // by column of the master problem that is of a group
}

// limitedColumn is what each offer of a group holds in a column.
type limitedColumn struct {
	column int
	group  int
	fills  []LimitedFill // by position in the group
}

func newLimitGroups(p CoverProblem) *limitGroups {
	g := &limitGroups{first: int32(len(p.Classes))}
	limit := make([]int32, len(p.Offers))
	var limited []int
	for i, o := range p.Offers {
		if limit[i] = -1; o.Limit > 0 {
			limited = append(limited, i)
		}
	}
	// What holds the same classes is together, so that columns have few of them.
	slices.SortStableFunc(limited, func(a, b int) int { return slices.Compare(p.Offers[a].Holds, p.Offers[b].Holds) })
	size := max(1, (len(limited)+mostLimitGroups-1)/mostLimitGroups)
	dims := len(p.Classes[0].Need)
	p.Classes = slices.Clone(p.Classes)
	for _, i := range limited {
		n := len(g.members) - 1
		if n < 0 || len(g.members[n]) == size {
			g.members, n = append(g.members, nil), n+1
			p.Classes = append(p.Classes, PriceClass{Need: make([]float64, dims), Count: -1, Group: -1})
		}
		g.members[n] = append(g.members[n], i)
		limit[i] = g.first + int32(n)
	}
	g.wholePodProblem = &wholePodProblem{solver: newSolverWith(p, limit, dims), fill: make([]float64, len(p.Offers)),
		patience: quickFills, glance: true}
	g.m.absolute = true
	return g
}

// addPlan gives the master what the nodes of the plan hold.
func (g *limitGroups) addPlan(plan []PlannedNode) {
	fills := make([]LimitedFill, len(g.Offers))
	for _, x := range plan {
		c := column{cost: x.Price}
		var fill LimitedFill
		for j, k := range x.Class {
			if g.m.row[k] >= 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, float64(x.Amount[j]))
				fill.Class, fill.Amount = append(fill.Class, k), append(fill.Amount, x.Amount[j])
			}
		}
		switch {
		case x.Price == 0:
			fills[x.Offer] = fill
		case len(c.class) > 0:
			g.m.addColumn(c)
		}
	}
	for n, list := range g.members {
		amounts := make([]float64, g.first)
		own := make([]LimitedFill, len(list))
		for at, i := range list {
			own[at] = fills[i]
			for j, k := range own[at].Class {
				amounts[k] += g.Offers[i].Limit * float64(own[at].Amount[j])
			}
		}
		g.addGroupColumn(n, amounts, own)
	}
}

// addGroupColumn gives the master what the offers of a group hold together.
func (g *limitGroups) addGroupColumn(n int, amounts []float64, fills []LimitedFill) {
	c := column{class: []int32{g.first + int32(n)}, amount: []float64{-1}, limited: true}
	for k, pods := range amounts {
		if pods > 0 {
			c.class, c.amount = append(c.class, int32(k)), append(c.amount, pods)
		}
	}
	if len(c.class) == 1 {
		return
	}
	g.columns = append(g.columns, limitedColumn{column: len(g.m.columns), group: n, fills: fills})
	g.m.addColumn(c)
}

// tryPrices lowers the filler's values until no offer can hold more worth than it costs, and finds what the groups are
// worth then. It gives the master the fills that would pay at the pure values and returns how many did.
func (g *limitGroups) tryPrices(pure []float64) (added int) {
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
	for n := range g.members {
		if g.tryGroup(n, pure) {
			added++
		}
	}
	return added
}

// tryOffers finds the best fill of each offer without a limit and lowers the values of what holds too much worth. It
// reports how many columns are new, and whether it lowered any value.
func (g *limitGroups) tryOffers(pure []float64) (added int, over bool) {
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
func (g *limitGroups) countFill(o *NodeOffer) {
	if g.proven {
		g.work += workPerGlance * len(o.Holds)
		return
	}
	g.work += workPerClass*len(o.Holds) + workPerTry*g.steps
}

// tryGroup finds the best fill of each offer of the group; false when they would not pay at the pure values.
func (g *limitGroups) tryGroup(n int, pure []float64) bool {
	limit := g.first + int32(n)
	amounts, worth := make([]float64, g.first), 0.0
	fills := make([]LimitedFill, len(g.members[n]))
	for at, i := range g.members[n] {
		o := &g.Offers[i]
		g.fill[i] = g.fillOf(o, i, 0)
		g.countFill(o)
		worth += o.Limit * g.fill[i]
		for j, pods := range g.best {
			if k := g.items[j].class; pods > 0 {
				amounts[k] += o.Limit * float64(pods)
				fills[at].Class, fills[at].Amount = append(fills[at].Class, k), append(fills[at].Amount, int(pods))
			}
		}
	}
	g.filler.Value[limit] = worth
	gain := -pure[limit]
	for k, pods := range amounts {
		gain += pods * pure[k]
	}
	if gain <= 1e-6*worth {
		return false
	}
	g.addGroupColumn(n, amounts, fills)
	return true
}
