package packing

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// stale is the part that is left of what was there when pods were priced, at which they are priced anew. Nodes for
// 50,000 pods cost 1 % more at 0.9, and 7 % more with 0.3 s of work a plan; at 0.98 they cost the same, at 1 0.2 % less
// for five times the CPU.
const stale = 0.97

// looks caps the offerings that are kept when all are asked, those of the best scores, and that are tried with whole
// pods. Half costs 0.07 % more in the mean of the families of infra/lab/ablation; double costs 0.05 % less, for a tenth
// more CPU.
const looks = 8

// PriceGuide makes nodes by the prices of pods: again and again it prices what is left, asks which offering could hold
// the most worth for its price, and makes a few such nodes.
type PriceGuide struct {
	a      *Solution
	prices PodPrices             // the classes of its groups are classes of these
	Items  []batchGroup          // groups of the batches that have pods left
	Filler *cover.KnapsackSolver // finds how many pods of which Items are worth most on a candidate
	cands  []*Candidate
	active []*Candidate
	most   []float64
	Fits   func(batch *PodBatch, offering int) int // pods of the batch that a node holds, nil to ask the offering
	last   []float64                               // while all candidates are asked: worth of resources on the last
	fresh  bool                                    // values are new since all candidates were asked
	Memory *GuideMemory                            // holds Items and candidates; the next guide with it overwrites them
}

// NewPriceGuide returns a guide to new nodes and hosts by the prices of the opener.
func (op NodeOpener) NewPriceGuide() *PriceGuide {
	return &PriceGuide{a: op.A, prices: op.Prices, Memory: &GuideMemory{}}
}

// openByPrices places batches on new nodes in the pools as long as that goes well. What it leaves over is for openTier.
// It returns true when an offering came to the ceiling of its pool of capacity and others have to be looked at.
func (op NodeOpener) openByPrices(pools []*capacity.OfferingPool, batches []*PodBatch) bool {
	g := op.NewPriceGuide()
	offerings := op.CandidateOfferings(pools, batches)
	g.PrepareGroups(offerings, batches)
	priced := math.Inf(1)
	for !op.A.Used.ClaimsUsedUp() && g.CountRemaining() {
		if g.remainingWorth() < priced*stale {
			g.repriceRemaining(0)
			priced = g.remainingWorth()
		}
		asked := g.fresh
		best, takes := g.bestCandidate()
		switch {
		case best == nil && asked:
			return false
		case best == nil:
			g.fresh = true
			continue
		}
		_, full := op.A.openCopies(best.Offering, takes, 1)
		if slices.Contains(takes[0].Batch.refused, best.Offering.InstanceType.Pool) {
			continue // others do without what MinValues refused
		}
		if full {
			return op.A.Used.spotAllowance(best.Offering, 1) == 0
		}
	}
	return false
}

// PrepareGroups finds the groups of the batches, and the candidates that hold pods of some of them.
func (g *PriceGuide) PrepareGroups(offerings []*capacity.Offering, batches []*PodBatch) {
	classes, groupCaps := g.prices.PriceClasses()
	type alike struct {
		class int32
		admit *podclass.Admission
	}
	g.Memory.reserveBatches(len(batches))
	g.Items = g.Memory.groups
	ids := make(map[alike]int, len(batches))
	g.Filler = cover.NewFiller(len(g.a.W.Dims), groupCaps)
	for _, batch := range batches {
		if batch.Left == 0 {
			continue
		}
		most := g.a.W.Topology.MaxPodsByHostRules(batch.View, podtopology.HostSite{Total: g.a.Total})
		id := alike{g.prices.ClassOf(batch.View.Class, batch.Pins), batch.Admit}
		if i, ok := ids[id]; ok {
			it := &g.Items[i]
			it.Batches, it.caps = append(it.Batches, batch), append(it.caps, most)
			continue
		}
		ids[id] = len(g.Items)
		g.Items = append(g.Items, g.Memory.newGroup(id.class, batch, most))
		g.Filler.Need = append(g.Filler.Need, classes[id.class].Need...)
		g.Filler.Group = append(g.Filler.Group, classes[id.class].Group)
	}
	g.Filler.Value = make([]float64, len(g.Items))
	g.fresh = true
	g.findCandidates(offerings, g.prices.ScaleUnits())
}

// findCandidates finds the offerings that hold pods of some group.
func (g *PriceGuide) findCandidates(offerings []*capacity.Offering, units []float64) {
	m := g.Memory
	m.reserveCandidates(len(offerings), len(units))
	g.cands = m.list
	for at, o := range offerings {
		m.reserveItems(len(g.Items))
		from := len(m.items)
		for i, it := range g.Items {
			if n := g.fitCount(it.Batches[0], at, o); n > 0 {
				m.items, m.fits = append(m.items, int32(i)), append(m.fits, n)
			}
		}
		if to := len(m.items); to > from {
			m.all[at] = Candidate{index: at, Offering: o, room: m.scaleRoom(o.Room, units), items: m.items[from:to:to],
				fits: m.fits[from:to:to]}
			g.cands = append(g.cands, &m.all[at])
		}
	}
}

// fitCount returns how many pods of the batch alone a node of the offering holds; at is its place among those asked.
func (g *PriceGuide) fitCount(batch *PodBatch, at int, o *capacity.Offering) int {
	if g.Fits != nil {
		return g.Fits(batch, at)
	}
	if n := capacity.FitCount(batch.View.Class.Need, o.Room); n > 0 && o.FirstAlternative(batch.Admit) >= 0 {
		return n
	}
	return 0
}

// CountRemaining counts what is left; false when nothing is.
func (g *PriceGuide) CountRemaining() bool {
	some := false
	for i := range g.Items {
		it := &g.Items[i]
		it.left, it.all = 0, 0
		for j, batch := range it.Batches {
			it.all += batch.Left
			it.left += min(batch.Left, it.caps[j])
		}
		some = some || it.all > 0
	}
	return some
}

// repriceRemaining asks what the pods that are left are worth while that part of the hosts is empty.
func (g *PriceGuide) repriceRemaining(hosts float64) {
	classes, _ := g.prices.PriceClasses()
	count := make([]float64, len(classes))
	for _, it := range g.Items {
		count[it.class] += float64(it.all)
	}
	g.setValues(g.prices.Reprice(count, hosts))
}

// setValues gives pods the values.
func (g *PriceGuide) setValues(values ClassValues) {
	g.fresh = true
	for i := range g.Items {
		it := &g.Items[i]
		it.Value = max(values.ofBatch(it.Batches[0]), leastValue*it.Batches[0].Least)
		g.Filler.Value[i] = it.Value
		for _, batch := range it.Batches {
			batch.Value = it.Value
		}
	}
}

// remainingWorth returns the worth of all pods that are left.
func (g *PriceGuide) remainingWorth() float64 {
	sum := 0.0
	for _, it := range g.Items {
		sum += float64(it.all) * it.Value
	}
	return sum
}

// bestCandidate returns the candidate whose node would hold the most worth for its price, and what it would hold.
func (g *PriceGuide) bestCandidate() (*Candidate, []BatchTake) {
	g.ScoreAgain()
	return g.BestOfActive()
}

// ScoreAgain asks all candidates when values are new, and keeps those of the best scores. Of those that can be no
// better than so many others it is enough to know that.
func (g *PriceGuide) ScoreAgain() {
	if !g.fresh {
		return
	}
	g.fresh = false
	g.active = g.active[:0]
	bar := math.Inf(1) // of the scores so far, that of the last that is kept
	for _, c := range g.cands {
		if c.score = g.scoreLowerBound(c); c.score > bar {
			continue
		}
		g.ScoreCandidate(c)
		g.last = append(g.last[:0], g.Filler.Price...)
		if g.active = append(g.active, c); len(g.active) >= 2*looks {
			slices.SortFunc(g.active, betterScore)
			g.active = g.active[:looks]
			bar = g.active[looks-1].score
		}
	}
	slices.SortFunc(g.active, betterScore)
	if len(g.active) > looks {
		g.active = g.active[:looks]
	}
	g.last = g.last[:0]
}

// BestOfActive is the best of the active candidates with whole pods. Scores get worse only while values stay, so
// candidates whose old score is no match for what was found need no second look.
func (g *PriceGuide) BestOfActive() (*Candidate, []BatchTake) {
	var best *Candidate
	var takes []BatchTake
	score := math.Inf(1)
	for i, c := range g.active {
		if i >= looks || c.score >= score {
			break
		}
		g.ScoreCandidate(c)
		t, value := g.FillWholePods(c)
		if value > 0 && g.a.OfferingCost(c.Offering)/value < score {
			best, takes, score = c, t, g.a.OfferingCost(c.Offering)/value
		}
	}
	slices.SortFunc(g.active, betterScore)
	return best, takes
}

// scoreLowerBound is no more than the score of the candidate, by what resources were worth on the one asked before.
func (g *PriceGuide) scoreLowerBound(c *Candidate) float64 {
	if len(g.last) == 0 {
		return 0
	}
	worth := g.Filler.UpperBound(c.items, g.mostOf(c), c.room, g.last)
	return g.a.OfferingCost(c.Offering) / max(rounding.LeastDivisor, worth)
}

func betterScore(x, y *Candidate) int {
	return cmp.Or(cmp.Compare(x.score, y.score), cmp.Compare(x.index, y.index))
}

// ScoreCandidate finds the best fill of the candidate with fractions of pods, and scores it by what it costs for what
// that is worth.
func (g *PriceGuide) ScoreCandidate(c *Candidate) {
	worth := g.Filler.Fill(c.items, g.mostOf(c), c.room, &c.basis)
	if c.host == nil {
		c.score = g.a.OfferingCost(c.Offering) / max(rounding.LeastDivisor, worth)
	}
}

// mostOf returns how many of each of its items the candidate can hold, valid until the next call.
func (g *PriceGuide) mostOf(c *Candidate) []float64 {
	g.most = g.most[:0]
	for i, it := range c.items {
		g.most = append(g.most, float64(min(g.Items[it].left, c.fits[i])))
	}
	return g.most
}

// FillWholePods tells what whole pods a new node of the candidate's offering would hold, beginning with the fill the
// filler found last.
func (g *PriceGuide) FillWholePods(c *Candidate) ([]BatchTake, float64) {
	list := g.Memory.ranked[:0]
	for i, id := range c.items {
		if g.Items[id].left == 0 {
			continue
		}
		cost := rounding.Error
		for r, x := range g.Filler.Need[int(id)*len(c.room) : (int(id)+1)*len(c.room)] {
			cost += g.Filler.Price[r] * x
		}
		list = append(list, rankedItem{id, int(g.Filler.N[i] + rounding.Speck), g.Items[id].Value / cost})
	}
	g.Memory.ranked = list
	slices.SortFunc(list, func(x, y rankedItem) int {
		return cmp.Or(cmp.Compare(y.density, x.density), cmp.Compare(x.item, y.item))
	})
	d := draftOfCandidate(g.a, c)
	for _, x := range list {
		n := x.first
		for _, batch := range g.Items[x.item].Batches {
			if n > 0 && batch.Left > 0 && !batch.whole {
				n -= d.takePods(batch, n)
			}
		}
	}
	for round := 0; round == 0 || round == 1 && d.near; round++ {
		for _, x := range list {
			need := g.Items[x.item].Batches[0].View.Class.Need
			for _, batch := range g.Items[x.item].Batches {
				if capacity.FitCount(need, d.room) == 0 {
					break
				}
				d.takePods(batch, batch.Left)
			}
		}
	}
	return d.takes, d.value
}
