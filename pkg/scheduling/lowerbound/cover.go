package lowerbound

import (
	"math"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/cover"
)

// enough is the part of the bound by which the fractional fleet may cost more. Half costs 0.06 % less and double 0.03 %
// less in the mean of the families of infra/lab/ablation, with 0.1 % more in one family each.
const enough = rounding.Slight

// Solver is a problem with everything learnt about it, so that other counts are priced quickly.
type Solver struct {
	reduced reducedProblem
	s       *solver
}

// NewSolver returns a solver for the problem.
func NewSolver(p cover.Problem) *Solver {
	r := reduceProblem(problem(p))
	counts := make([]float64, len(p.Classes))
	for k, c := range p.Classes {
		counts[k] = c.Count
	}
	for k, n := range r.reducedCounts(counts) {
		r.problem.Classes[k].Count = n
	}
	return &Solver{r, newSolver(r.problem)}
}

// Solve prices the classes. Classes that no offering holds get the value 0.
func (s *Solver) Solve() ClassPrices {
	out := s.s.generateColumns()
	out.Value, out.Fill = s.reduced.originalValues(out.Value), s.s.upper
	return out
}

// Reprice prices the classes for other counts, with the fills known so far. Of each limited offering the part limits is
// left. What it returns guides; it proves nothing.
func (s *Solver) Reprice(count []float64, limits float64) []float64 {
	counts := s.reduced.reducedCounts(count)
	for i, o := range s.s.Offerings {
		if s.s.limit[i] >= 0 {
			counts = append(counts, -o.Limit*limits)
		}
	}
	return s.reduced.originalValues(s.s.priceAgain(counts))
}

func (s *solver) generateColumns() ClassPrices {
	p := s.problem
	best := ClassPrices{Value: make([]float64, len(p.Classes)), Least: math.Inf(1)}
	if s.m.rowCount() == 0 {
		best.Least = 0
		return best
	}
	for _, c := range s.exchangeColumns() {
		s.m.addColumn(c)
	}
	exchanged, last, with := true, max(1, p.Rounds), 0.0
	all := true // ask every offering, which alone can prove a bound, or only those that came near lately
	for mix := calm; best.Rounds < last; {
		best.Rounds++
		s.m.improveBasis()
		best.Least = s.m.fleetCost()
		pure := s.m.classValues(s.filler.Value)
		if best.Bound > 0 { // between the best prices so far and the newest: that is nearer to the truth than either
			for i := range s.filler.Value {
				s.filler.Value[i] = (1-mix)*s.filler.Value[i] + mix*best.Value[i]
			}
		}
		if !exchanged && best.Least < with*(1+slight) {
			break // exchanges were right all along
		}
		added := s.priceOfferings(pure, all)
		if all {
			s.makeFeasible()
			if v := s.totalWorth(); v > best.Bound {
				best.Bound = v
				copy(best.Value, s.filler.Value)
			}
		}
		switch {
		case added > 0 && best.Least-best.Bound > enough*best.Bound:
			mix, all = calm, false
		case !all:
			all = true
		case best.Least-best.Bound > enough*best.Bound && mix > slight:
			mix /= 4
		case exchanged:
			exchanged, last, with = false, best.Rounds+last/2, best.Least
			s.m.setExchanges(false)
			mix, all = calm, false
		default:
			last = 0
		}
	}
	if !exchanged && best.Bound < with*(1+slight) { // they will be of use when counts change
		s.m.setExchanges(true)
	}
	return best
}

func (s *solver) priceAgain(count []float64) []float64 {
	s.m.demandIs(count, s.mendingSteps())
	return s.m.classValues(s.filler.Value)
}

// mendingSteps caps the steps of a repricing before it begins anew: as many as beginning anew took the last time, if
// those were many.
func (s *solver) mendingSteps() int { return max(mend, s.m.anew) }

// What other numbers bring is a mean of the families of infra/lab/ablation.
const (
	// calm is the part of the best prices so far in those that offerings are asked with.
	calm = 0.5
	// exactTries caps the tries that lower only the values of pods in the best fill of an offering, before all are. One
	// costs services 0.3 % more.
	exactTries = 3
	// near is the part of its price that an offering's best fill must be worth for the offering to be asked in every
	// round. 1 costs 0.07 % more.
	near = 0.9
)

func newSolver(p problem) *solver {
	dims := 0
	if len(p.Classes) > 0 {
		dims = len(p.Classes[0].Need)
	}
	limit := p.addLimits(dims)
	s := &solver{problem: p, filler: cover.NewFiller(dims, p.Caps), most: make([][]float64, len(p.Offerings)),
		upper: make([]float64, len(p.Offerings)), prices: make([][]float64, len(p.Offerings)),
		basis: make([]cover.Basis, len(p.Offerings)), limit: limit}
	s.filler.Value = make([]float64, len(p.Classes))
	for _, c := range p.Classes {
		s.filler.Need = append(s.filler.Need, c.Need...)
		s.filler.Group = append(s.filler.Group, c.Group)
	}
	first := make([]column, len(p.Classes))
	for i, o := range p.Offerings {
		s.most[i] = make([]float64, len(o.Holds))
		for j, k := range o.Holds {
			n := p.mostOn(k, o.Room)
			s.most[i][j] = n
			if n > 0 && limit[i] < 0 && (len(first[k].amount) == 0 || o.Price*first[k].amount[0] < first[k].cost*n) {
				first[k] = column{cost: o.Price, class: []int32{k}, amount: []float64{n}}
			}
		}
	}
	s.m = newMaster(p.Classes, first)
	s.differs = make([]bool, dims)
	for r := range dims {
		s.differs[r] = p.offeringsVary(r)
	}
	return s
}

// priceOfferings asks offerings, all or those that are near, for the best fill at the filler's values, and gives the
// master those fills that would pay at the pure ones. It returns how many did.
func (s *solver) priceOfferings(pure []float64, all bool) int {
	s.over = s.over[:0]
	if all {
		s.near = s.near[:0]
		for i := range s.Offerings {
			s.near = append(s.near, int32(i))
		}
	}
	added := 0
	var last []float64 // what resources were worth on the offering asked last
	kept := s.near[:0]
	for _, i := range s.near {
		o := &s.Offerings[i]
		if s.limit[i] >= 0 {
			kept = append(kept, i)
			added += s.priceLimited(i, pure)
			continue
		}
		if all { // what proved that it, or the one before, holds little often still proves it
			upper := math.Inf(1)
			for _, prices := range [2][]float64{s.prices[i], last} {
				if prices != nil && upper >= near*o.Price {
					upper = s.filler.UpperBound(o.Holds, s.most[i], o.Room, prices)
				}
			}
			if upper < near*o.Price {
				s.upper[i] = upper
				continue
			}
		}
		upper := s.filler.Fill(o.Holds, s.most[i], o.Room, &s.basis[i])
		s.upper[i], s.prices[i] = upper, append(s.prices[i][:0], s.filler.Price...)
		last = s.prices[i]
		if !all || upper >= near*o.Price {
			kept = append(kept, i)
		}
		if upper <= o.Price*(1+tolerance) {
			continue
		}
		s.over = append(s.over, i)
		c := column{cost: o.Price}
		gain := 0.0
		for j, n := range s.filler.N {
			if k := o.Holds[j]; n > speck && s.m.row[k] >= 0 {
				c.class, c.amount = append(c.class, k), append(c.amount, n)
				gain += n * pure[k]
			}
		}
		if gain > o.Price*(1+speck) {
			s.m.addColumn(c)
			added++
		}
	}
	s.near = kept
	return added
}

// priceLimited asks an offering of which there are so many for the best fill. What one of it is worth follows from the
// values of pods.
func (s *solver) priceLimited(i int32, pure []float64) (added int) {
	o, k := &s.Offerings[i], s.limit[i]
	s.upper[i] = s.filler.Fill(o.Holds, s.most[i], o.Room, &s.basis[i])
	s.filler.Value[k] = s.upper[i]
	c, gain := column{class: []int32{k}, amount: []float64{-1}, limited: true}, -pure[k]
	for j, n := range s.filler.N {
		if k := o.Holds[j]; n > speck && s.m.row[k] >= 0 {
			c.class, c.amount = append(c.class, k), append(c.amount, n)
			gain += n * pure[k]
		}
	}
	if len(c.class) == 1 || gain <= speck*s.upper[i] {
		return 0
	}
	s.m.addColumn(c)
	return 1
}

// makeFeasible lowers the filler's values until no offering can hold more worth than it costs. Only what was worth too
// much together on some offering becomes less, so one bad price does not spoil all.
func (s *solver) makeFeasible() {
	v := s.filler.Value
	for _, i := range s.over {
		o := &s.Offerings[i]
		for try := 0; ; try++ {
			upper := s.filler.Fill(o.Holds, s.most[i], o.Room, &s.basis[i])
			if upper <= o.Price*(1+tolerance) {
				break
			}
			factor := o.Price / upper
			for j, k := range o.Holds {
				if try >= exactTries || s.filler.N[j] > speck {
					v[k] *= factor
				}
			}
			if try > exactTries+1 {
				break // not even now: rounding; worth is asked for less than the whole
			}
		}
	}
	if len(s.over) > 0 {
		s.revalueLimits()
	}
}

// revalueLimits finds what nodes are worth of which there are so many, at the values of pods.
func (s *solver) revalueLimits() {
	for i, k := range s.limit {
		if k >= 0 {
			o := &s.Offerings[i]
			s.filler.Value[k] = s.filler.Fill(o.Holds, s.most[i], o.Room, &s.basis[i])
		}
	}
}

// totalWorth returns the worth of all pods at the filler's values.
func (s *solver) totalWorth() float64 {
	sum := 0.0
	for k, c := range s.Classes {
		if s.m.row[k] >= 0 {
			sum += c.Count * s.filler.Value[k]
		}
	}
	return sum * (1 - 2*tolerance) // as much too much may fills have been worth, and sums be wrong
}
