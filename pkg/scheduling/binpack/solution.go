package binpack

import (
	"maps"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// solution is a place for pods: who goes where, what pools use then, and who is left.
type solution struct {
	w        *problem
	strategy strategy
	bins     []*capacity.Bin
	rest     [][]string // by class: the pods without a place
	used     usage
	tally    podtopology.DomainCounts
	total    []int               // by counter of hostnames: pods anywhere
	landed   map[classDomain]int // pods of a class in a domain
	blocked  []map[string]bool   // by class: why it was held back, beside what a pool says
	joins    int                 // see maxJoins
	prices   podPrices           // of pods for new nodes, nil for those of its strategy
}

// newSolution is a solution in which all pods wait.
func (w *problem) newSolution(st strategy) *solution {
	a := &solution{
		w: w, strategy: st, rest: make([][]string, len(w.classes.List)), landed: map[classDomain]int{},
		blocked: make([]map[string]bool, len(w.classes.List)), tally: w.topology.Tally.Clone(),
		total: slices.Clone(w.topology.Total), used: w.standingUsage(st.spotCeiling),
	}
	if st.guide == byLinearProgram {
		a.prices = st.prices.guidePrices()
	}
	for i, k := range w.classes.List {
		a.rest[i], a.blocked[i] = k.Pods, map[string]bool{}
	}
	for _, b := range w.nodes.Hosts {
		a.bins = append(a.bins, b.Clone())
	}
	return a
}

// placesMoreOrCostsLess reports whether the solution is the better one: it leaves fewer pods, or as many for less.
func (a *solution) placesMoreOrCostsLess(other *solution) bool {
	n, m := a.waiting(), other.waiting()
	return n < m || n == m && a.totalCost() < other.totalCost()*(1-1e-9)
}

// leavesFewer reports whether the solution has a place for more pods than the other, of the highest priority in which
// they differ.
func (a *solution) leavesFewer(other *solution) bool {
	byPriority := map[int32]int{}
	for _, k := range a.w.classes.List {
		byPriority[k.Pod.Priority] += len(other.rest[k.ID]) - len(a.rest[k.ID])
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(byPriority))) {
		if n := byPriority[p]; n != 0 {
			return n > 0
		}
	}
	return false
}

// waiting counts the pods that have no place.
func (a *solution) waiting() int { return a.countWaiting(a.w.classes.List) }

// countWaiting counts the pods of the classes that have no place yet.
func (a *solution) countWaiting(list []*podclass.Class) int {
	n := 0
	for _, k := range list {
		n += len(a.rest[k.ID])
	}
	return n
}

// isShort reports whether pods stayed without a home that some pool or host could have taken.
func (a *solution) isShort() bool {
	return slices.ContainsFunc(a.w.classes.List,
		func(k *podclass.Class) bool { return len(a.rest[k.ID]) > 0 && couldHold(a.w, k) })
}

// couldHold reports whether some pool or host could take a pod of the class, were there no others.
func couldHold(w *problem, k *podclass.Class) bool {
	return w.catalog.ForSome(k.LastRelaxation()) || slices.ContainsFunc(w.nodes.Hosts, func(b *capacity.Bin) bool {
		return capacity.FitCount(k.Need, b.Room) > 0 && b.AlternativeFor(k.LastRelaxation().Admission) >= 0
	})
}

// mayBeLimited reports whether limits, of pools or of the pass, may have kept it from making nodes.
func (a *solution) mayBeLimited() bool {
	return a.used.claimsUsedUp() ||
		slices.ContainsFunc(a.w.catalog.Pools, func(p *capacity.Pool) bool { return len(p.Limited) > 0 })
}

// offerCost is the price of the offer with what any node costs.
func (a *solution) offerCost(o *capacity.Offering) float64 { return o.Price + a.strategy.nodeCost }

// totalCost is the price of the new nodes with what any node costs.
func (a *solution) totalCost() float64 {
	return a.newNodePrice() + float64(a.used.opened)*a.strategy.nodeCost
}

// newNodePrice is what the new nodes cost, each as the cheapest offer that holds what is on it.
func (a *solution) newNodePrice() float64 {
	sum := 0.0
	var last *capacity.Bin
	for _, b := range a.bins {
		if b.Offer == nil {
			continue
		}
		if b.Paid == 0 && last != nil && b.SameContents(last) {
			b.Paid = last.Paid
		}
		sum += a.priceOf(b)
		last = b
	}
	return sum
}

// priceOf is what the new node costs as the cheapest offer of its pool that holds what is on it.
func (a *solution) priceOf(b *capacity.Bin) float64 {
	if b.Paid > 0 {
		return b.Paid
	}
	used := make([]int64, len(a.w.dims))
	ports := false
	for _, l := range b.Load {
		ports = ports || len(l.Pod.Class.Pod.HostPorts) > 0
		for i, x := range l.Pod.Class.Need {
			used[i] += x * int64(len(l.Pods))
		}
	}
	capacity.AddSharedVolumes(a.w.dims, used, b.Load)
	price := b.Offer.Price
	for _, o := range b.Offer.InstanceType.Pool.Sale { // cheapest first
		if ports || o.Price >= price {
			break
		}
		if capacity.AtLeast(o.Room, used) && capacity.LoadsAllowed(b.Load, o) {
			price = o.Price
		}
	}
	b.Paid = price
	return price
}

// usage is what a solution uses of what there is a limit for.
type usage struct {
	pools  []capacity.PoolUsage // by pool
	slots  map[string]int64     // left in capacity reservations and commitments, by their ids
	opened int                  // new nodes
	most   int                  // of them in one pass, 0 for no limit

	spotCeiling int64 // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	spot        capacity.SpotUsage
}

// standingUsage is what nodes use that exist or are on their way.
func (w *problem) standingUsage(spotCeiling int64) usage {
	u := usage{slots: w.catalog.ReservationSlots(w.all, w.committed), most: w.s.Rules.MaxClaims,
		spotCeiling: spotCeiling}
	for _, p := range w.catalog.Pools {
		u.pools = append(u.pools, p.Used)
	}
	if spotCeiling > 0 {
		u.spot = w.nodes.StandingSpot()
	}
	return u
}

// claimsUsedUp reports whether the pass may make no more nodes.
func (u *usage) claimsUsedUp() bool { return u.most != 0 && u.opened >= u.most }

// exceedsLimits reports whether one more node of this capacity would break a limit of the pool.
func (u *usage) exceedsLimits(p *capacity.Pool, capacity resources.List) bool {
	return len(p.ExceededLimits(u.pools[p.ID], capacity)) > 0
}

// spotAllowance is how many more nodes of the offer, of at most so many, its reservation or commitment and the ceiling
// leave.
func (u *usage) spotAllowance(o *capacity.Offering, most int) int {
	if id, amount := o.Slot(); amount > 0 {
		most = int(min(int64(most), max(0, u.slots[id])/amount))
	}
	cpu := o.InstanceType.Type.Capacity.CPU
	if u.spotCeiling == 0 || o.CapacityType != instancetypes.Spot || cpu <= 0 {
		return most
	}
	return int(min(int64(most), max(0, u.spotCeiling-u.spot.ByPool[o.Offer])/cpu))
}

// overLimitInPart names the limits that leave out some of the pool's types.
func (u *usage) overLimitInPart(p *capacity.Pool) string {
	broken := map[string]bool{}
	for _, m := range p.ForSale {
		for _, name := range p.ExceededLimits(u.pools[p.ID], m.Type.Capacity) {
			broken[name] = true
		}
	}
	return u.limitTexts(p, broken)
}

// limitTexts tells for each of the limits what it is and how much is used.
func (u *usage) limitTexts(p *capacity.Pool, broken map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		used := u.pools[p.ID].List.Get(name)
		if name == string(api.LimitNodes) {
			used = u.pools[p.ID].Nodes
		}
		parts = append(parts, capacity.OverText(p, name, used))
	}
	return strings.Join(parts, " and ")
}

// spotUse is the spot capacity once the solution's new nodes are there, each as the offer it was opened with.
func (a *solution) spotUse() capacity.SpotUsage {
	u := a.w.nodes.StandingSpot()
	for _, b := range a.bins {
		if b.Offer != nil {
			u.Add(b.Offer.Offer, b.Offer.InstanceType.Type.Capacity.CPU, 1)
		}
	}
	return u
}
