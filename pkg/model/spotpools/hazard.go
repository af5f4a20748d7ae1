package spotpools

import (
	"math"
	"slices"
	"time"
)

// Constants of the estimate.
const (
	// priorHazard is the interruptions per node hour of a pool before anything was seen: about one in seven months.
	priorHazard = 0.0002
	// priorHours is how many node hours of all pools that is worth.
	priorHours = 1000
	// strength is how many expected interruptions the prior of a zone, of a family in it and of a pool is worth.
	strength = 2
	// maxHazard bounds an estimate, in interruptions per node hour.
	maxHazard = 1

	// mostHours and mostEvents bound what another cluster's record tells of one pool; more is scaled down to it.
	mostHours  = 1000
	mostEvents = 10
	// mostFactor bounds how far the records of other clusters move an estimate in either direction.
	mostFactor = 4
)

// Summary is what decisions know of spot pools: the cluster's own record and those of others as one.
type Summary struct {
	At     time.Time `json:"at,omitzero"`
	Own    []Cell    `json:"own,omitempty"`
	Others []Cell    `json:"others,omitempty"`
}

// Summarize is the summary at the time now. The order of the other records does not matter.
func Summarize(own Record, others []Record, now time.Time) Summary {
	s := Summary{At: now, Own: own.FadeTo(now).Pools}
	var all []Cell
	for _, r := range others {
		for _, c := range r.FadeTo(now).Pools {
			c.Evidence = c.times(min(1, mostHours/max(c.Hours, 1), mostEvents/max(c.events(), 1)))
			all = append(all, c)
		}
	}
	// equal cells are added in an order of their own, so that sums come to the same bits
	slices.SortFunc(all, compareCells)
	s.Others = bounded(all)
	return s
}

// Plausible is the summary without pools and evidence that cannot be.
func (s Summary) Plausible() Summary {
	odd := func(c Cell) bool { return !c.Pool.valid() || !c.Evidence.valid() }
	s.Own, s.Others = slices.DeleteFunc(slices.Clone(s.Own), odd), slices.DeleteFunc(slices.Clone(s.Others), odd)
	return s
}

// Hazards estimates how often nodes of each pool are interrupted.
type Hazards struct {
	own, all levels
	seen     map[Pool]Evidence
	shared   bool // other clusters told something
}

// EstimateHazards is the estimate from the summary.
func EstimateHazards(s Summary) Hazards {
	h := Hazards{own: newLevels(s.Own), shared: len(s.Others) > 0, seen: map[Pool]Evidence{}}
	all := slices.Concat(s.Own, s.Others)
	h.all = h.own
	if h.shared {
		h.all = newLevels(all)
	}
	for _, c := range all {
		h.seen[c.Pool] = h.seen[c.Pool].plus(c.Evidence)
	}
	return h
}

// Of is the estimated hazard of the pool, in interruptions per node hour.
func (h Hazards) Of(p Pool) float64 {
	usual := h.own.hazard(p)
	if !h.shared {
		return usual
	}
	return min(max(h.all.hazard(p), usual/mostFactor), usual*mostFactor)
}

// Seen is the evidence of the pool itself.
func (h Hazards) Seen(p Pool) Evidence { return h.seen[p] }

// levels are the sums of what was seen, in all, by zone, by family in a zone, and by pool.
type levels struct {
	total    Evidence
	zones    map[string]Evidence
	families map[Pool]Evidence // the type is the family
	pools    map[Pool]Evidence
}

func newLevels(cells []Cell) levels {
	l := levels{zones: map[string]Evidence{}, families: map[Pool]Evidence{}, pools: map[Pool]Evidence{}}
	for _, c := range cells {
		f := Pool{Type: c.family(), Zone: c.Zone}
		l.total = l.total.plus(c.Evidence)
		l.zones[c.Zone] = l.zones[c.Zone].plus(c.Evidence)
		l.families[f] = l.families[f].plus(c.Evidence)
		l.pools[c.Pool] = l.pools[c.Pool].plus(c.Evidence)
	}
	return l
}

// hazard is the mean of the pool's gamma distribution. Each level's mean is the prior mean of the next.
func (l levels) hazard(p Pool) float64 {
	mean := posteriorMean(l.total, priorHazard, priorHazard*priorHours)
	mean = posteriorMean(l.zones[p.Zone], mean, strength)
	mean = posteriorMean(l.families[Pool{Type: p.family(), Zone: p.Zone}], mean, strength)
	return math.Min(posteriorMean(l.pools[p], mean, strength), maxHazard)
}

// posteriorMean is the mean of a Poisson rate of which the evidence was seen, whose prior is a gamma distribution of
// that mean and shape.
func posteriorMean(e Evidence, mean, shape float64) float64 {
	return (e.events() + shape) / (e.Hours + shape/mean)
}
