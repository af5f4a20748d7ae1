package packing

import (
	"maps"
	"slices"
	"strings"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/rounding"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// guide is a way to choose new nodes.
type guide uint8

// Ways to choose new nodes.
const (
	ByShadowPrice   guide = iota // one after the other, by the prices of pods
	ByCostShare                  // one after the other, by the price of each pod's share of a node
	ByLinearProgram              // all together, as far as few rules tie pods to each other
)

// Strategy says how one solution is made.
type Strategy struct {
	Prices            priceSource // asked for the worth of pods when new nodes are needed
	Guide             guide       // how offerings of new nodes are chosen
	ByPriority        bool        // pods of the highest priority first, not all at once
	Turns             map[int]int // by class: those with more of them choose before others, see withLeftFirst
	IgnorePreferences bool        // pods ask for no more than they require
	SpotCeiling       int64       // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	HostsByPrices     bool        // hosts are filled with what would cost most elsewhere
	NodeCost          float64     // what a node costs beside its price, USD per hour
}

// priceSource has the prices by which nodes are filled and made. Who finds them, and how, is not known here.
type priceSource interface {
	// WorthOf returns the prices of the pods for which the solution looks for new nodes.
	WorthOf(s *Solution) PodPrices
	// CoverByWholeNodes returns cheap nodes with whole pods that hold all pods of the problem. Some are left out when
	// it has gone through so many numbers; no limit is meant by 0.
	CoverByWholeNodes(p cover.Problem, work int) []cover.FleetNode
}

// classDomain is a class of pods in a domain of a topology key, or anywhere if it has no key.
type classDomain struct {
	Class  int
	Key    string
	Domain string
}

// Solution is a place for pods: who goes where, what pools use then, and who is left.
type Solution struct {
	W        *Problem                 // what it solves
	Strategy Strategy                 // that it is made by
	Bins     []*capacity.Bin          // a copy of each host, and the new nodes
	Rest     [][]string               // by class: the pods without a place
	Used     usage                    // of limits, by nodes that stay and by new ones
	Tally    podtopology.DomainCounts // of pods that stay and those that it placed
	Total    []int                    // by counter of hostnames: pods anywhere
	landed   map[classDomain]int      // pods of a class in a domain
	Blocked  []map[string]bool        // by class: why it was held back, beside what a pool says
	joins    int                      // see maxJoins
}

// NewSolution is a solution in which all pods wait.
func (p *Problem) NewSolution(st Strategy) *Solution {
	s := &Solution{
		W: p, Strategy: st, Rest: make([][]string, len(p.Classes.List)), landed: map[classDomain]int{},
		Blocked: make([]map[string]bool, len(p.Classes.List)), Tally: p.Topology.Tally.Clone(),
		Total: slices.Clone(p.Topology.Total), Used: p.standingUsage(st.SpotCeiling),
	}
	for i, class := range p.Classes.List {
		s.Rest[i], s.Blocked[i] = class.Pods, map[string]bool{}
	}
	for _, b := range p.Nodes.Hosts {
		s.Bins = append(s.Bins, b.Clone())
	}
	return s
}

// PlacesMoreOrCostsLess reports whether the solution is the better one: it leaves fewer pods, or as many for less.
func (s *Solution) PlacesMoreOrCostsLess(other *Solution) bool {
	n, m := s.Waiting(), other.Waiting()
	return n < m || n == m && s.totalCost() < other.totalCost()*(1-rounding.Error)
}

// LeavesFewer reports whether the solution has a place for more pods than the other, of the highest priority in which
// they differ.
func (s *Solution) LeavesFewer(other *Solution) bool {
	byPriority := map[int32]int{}
	for _, class := range s.W.Classes.List {
		byPriority[class.Pod.Priority] += len(other.Rest[class.ID]) - len(s.Rest[class.ID])
	}
	for _, p := range slices.Backward(slices.Sorted(maps.Keys(byPriority))) {
		if n := byPriority[p]; n != 0 {
			return n > 0
		}
	}
	return false
}

// Waiting counts the pods that have no place.
func (s *Solution) Waiting() int { return s.countWaiting(s.W.Classes.List) }

// countWaiting counts the pods of the classes that have no place yet.
func (s *Solution) countWaiting(list []*podclass.Class) int {
	n := 0
	for _, class := range list {
		n += len(s.Rest[class.ID])
	}
	return n
}

// IsShort reports whether pods stayed without a home that some pool or host could have taken.
func (s *Solution) IsShort() bool {
	return slices.ContainsFunc(s.W.Classes.List,
		func(class *podclass.Class) bool { return len(s.Rest[class.ID]) > 0 && s.W.CouldHold(class) })
}

// CouldHold reports whether some pool or host could take a pod of the class, were there no others.
func (p *Problem) CouldHold(class *podclass.Class) bool {
	return p.Catalog.ForSome(class.LastRelaxation()) || slices.ContainsFunc(p.Nodes.Hosts, func(b *capacity.Bin) bool {
		return capacity.FitCount(class.Need, b.Room) > 0 && b.AlternativeFor(class.LastRelaxation().Admission) >= 0
	})
}

// MayBeLimited reports whether limits, of pools or of the pass, may have kept it from making nodes.
func (s *Solution) MayBeLimited() bool {
	return s.Used.ClaimsUsedUp() ||
		slices.ContainsFunc(s.W.Catalog.Pools, func(p *capacity.OfferingPool) bool { return len(p.Limited) > 0 })
}

// OfferingCost is the price of the offering with what any node costs.
func (s *Solution) OfferingCost(o *capacity.Offering) float64 { return o.Price + s.Strategy.NodeCost }

// totalCost is the price of the new nodes with what any node costs.
func (s *Solution) totalCost() float64 {
	return s.NewNodePrice() + float64(s.Used.Opened)*s.Strategy.NodeCost
}

// NewNodePrice returns the cost of the new nodes, each as the cheapest offering that holds what is on it.
func (s *Solution) NewNodePrice() float64 {
	sum := 0.0
	var last *capacity.Bin
	for _, b := range s.Bins {
		if b.Offering == nil {
			continue
		}
		if b.Paid == 0 && last != nil && b.SameContents(last) {
			b.Paid = last.Paid
		}
		sum += s.PriceOf(b)
		last = b
	}
	return sum
}

// PriceOf returns the cost of the new node as the cheapest offering of its pool that holds what is on it.
func (s *Solution) PriceOf(b *capacity.Bin) float64 {
	if b.Paid > 0 {
		return b.Paid
	}
	used := make([]int64, len(s.W.Dims))
	ports := false
	for _, l := range b.Load {
		ports = ports || len(l.Pod.Class.Pod.HostPorts) > 0
		for i, x := range l.Pod.Class.Need {
			used[i] += x * int64(len(l.Pods))
		}
	}
	capacity.AddSharedVolumes(s.W.Dims, used, b.Load)
	price := b.Offering.Price
	for _, o := range b.Offering.InstanceType.Pool.Sale { // cheapest first
		if ports || o.Price >= price {
			break
		}
		if capacity.AtLeast(o.Room, used) && o.AllowsLoads(b.Load) {
			price = o.Price
		}
	}
	b.Paid = price
	return price
}

// usage holds what a solution uses of all that there is a limit for.
type usage struct {
	Pools  []capacity.PoolUsage // by pool
	slots  map[string]int64     // left in capacity reservations and commitments, by their ids
	Opened int                  // new nodes
	most   int                  // of them in one pass, 0 for no limit

	SpotCeiling int64 // most spot capacity, in millicores, in one pool of capacity; 0 for no limit
	spot        capacity.SpotUsage
}

// standingUsage returns the usage of nodes that exist or are on their way.
func (p *Problem) standingUsage(spotCeiling int64) usage {
	u := usage{slots: p.Catalog.ReservationSlots(p.All, p.Committed), most: p.S.Rules.MaxClaims,
		SpotCeiling: spotCeiling}
	for _, pool := range p.Catalog.Pools {
		u.Pools = append(u.Pools, pool.Used)
	}
	if spotCeiling > 0 {
		u.spot = p.Nodes.StandingSpot()
	}
	return u
}

// ClaimsUsedUp reports whether the pass may make no more nodes.
func (u *usage) ClaimsUsedUp() bool { return u.most != 0 && u.Opened >= u.most }

// ExceedsLimits reports whether one more node of this capacity would break a limit of the pool.
func (u *usage) ExceedsLimits(p *capacity.OfferingPool, capacity resources.List) bool {
	return len(p.ExceededLimits(u.Pools[p.ID], capacity)) > 0
}

// limitsOfTypes is ExceedsLimits for types of the pool, each of which is looked at once.
func (u *usage) limitsOfTypes(p *capacity.OfferingPool) func(t *capacity.InstanceType) bool {
	known := map[*capacity.InstanceType]bool{}
	return func(t *capacity.InstanceType) bool {
		exceeds, ok := known[t]
		if !ok {
			exceeds = u.ExceedsLimits(p, t.Type.Capacity)
			known[t] = exceeds
		}
		return exceeds
	}
}

// spotAllowance returns how many more nodes of the offering, of at most so many, its reservation or commitment and the
// ceiling leave.
func (u *usage) spotAllowance(o *capacity.Offering, most int) int {
	if id, amount := o.Slot(); amount > 0 {
		most = int(min(int64(most), max(0, u.slots[id])/amount))
	}
	cpu := o.InstanceType.Type.Capacity.CPU
	if u.SpotCeiling == 0 || o.CapacityType != instancetypes.Spot || cpu <= 0 {
		return most
	}
	return int(min(int64(most), max(0, u.SpotCeiling-u.spot.ByPool[o.OfferingKey])/cpu))
}

// overLimitInPart names the limits that leave out some of the pool's types.
func (u *usage) overLimitInPart(p *capacity.OfferingPool) string {
	broken := map[string]bool{}
	for _, t := range p.ForSale {
		for _, name := range p.ExceededLimits(u.Pools[p.ID], t.Type.Capacity) {
			broken[name] = true
		}
	}
	return u.LimitTexts(p, broken)
}

// LimitTexts tells for each of the limits what it is and how much is used.
func (u *usage) LimitTexts(p *capacity.OfferingPool, broken map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		used := u.Pools[p.ID].List.Get(name)
		if name == string(api.LimitNodes) {
			used = u.Pools[p.ID].Nodes
		}
		parts = append(parts, p.LimitText(name, used))
	}
	return strings.Join(parts, " and ")
}

// SpotUse is the spot capacity once the solution's new nodes are there, each as the offering it was opened with.
func (s *Solution) SpotUse() capacity.SpotUsage {
	u := s.W.Nodes.StandingSpot()
	for _, b := range s.Bins {
		if b.Offering != nil {
			u.Add(b.Offering.OfferingKey, b.Offering.InstanceType.Type.Capacity.CPU, 1)
		}
	}
	return u
}
