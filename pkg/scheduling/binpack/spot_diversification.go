package binpack

import (
	"cmp"
	"slices"

	"joiner/pkg/model/instancetypes"
)

const (
	// defaultSpotPoolShare is the part of all spot capacity that may be in one instance type in one zone.
	defaultSpotPoolShare = 0.8
	// fewSpotNodes is up to how many spot nodes there is no such limit.
	fewSpotNodes = 4
)

// spotUsage is the spot capacity of a cluster, in millicores.
type spotUsage struct {
	byPool map[instancetypes.Offer]int64
	total  int64
	nodes  int
	share  float64 // how much of all may be in one pool of capacity, that is one type in one zone
}

func (u *spotUsage) add(o instancetypes.Offer, cpu int64, nodes int) {
	if o.CapacityType == instancetypes.Spot {
		u.byPool[o] += cpu
		u.total += cpu
		u.nodes += nodes
	}
}

// mostInPool is how much of the spot capacity one pool of capacity may have, in millicores.
func (u spotUsage) mostInPool() int64 { return int64(u.share * float64(u.total)) }

// exceedsShare reports whether the pool of capacity has more than its share.
func (u spotUsage) exceedsShare(o instancetypes.Offer) bool {
	return o.CapacityType == instancetypes.Spot && u.nodes > fewSpotNodes &&
		float64(u.byPool[o]) > u.share*float64(u.total)
}

// anyExceedsShare reports whether any pool of capacity has more than its share.
func (u spotUsage) anyExceedsShare() bool {
	for o := range u.byPool {
		if u.exceedsShare(o) {
			return true
		}
	}
	return false
}

// standingSpot is the spot capacity of the nodes that stay.
func (en *existingNodes) standingSpot() spotUsage {
	u := spotUsage{byPool: map[instancetypes.Offer]int64{},
		share: cmp.Or(en.s.Rules.MaxSpotPoolFraction, defaultSpotPoolShare)}
	for _, h := range en.all {
		if h.MarkedForDeletion() {
			continue
		}
		l := h.Labels()
		u.add(instancetypes.Offer{CapacityType: l[labelCapacity], Type: l[labelType], Zone: l[labelZone]},
			h.Capacity().CPU, 1)
	}
	return u
}

// spotUse is the spot capacity once the attempt's new nodes are there, each as the offer it was opened with.
func (a *solution) spotUse() spotUsage {
	u := a.w.nodes.standingSpot()
	for _, b := range a.bins {
		if b.offer != nil {
			u.add(b.offer.Offer, b.offer.model.typ.Capacity.CPU, 1)
		}
	}
	return u
}

// diversifySpot is the solution again with less in one pool of capacity, where it has more than that pool's share in
// it: with other types, which may be cheaper than the same type elsewhere. What comes out must place as many pods, and
// as many of them on spot; else diversifyLaunches finds other zones and types for the nodes that there are.
func (w *problem) diversifySpot(a *solution, st strategy) *solution {
	use := a.spotUse()
	if !use.anyExceedsShare() {
		return a
	}
	st.guide, st.caps, st.spotCeiling = a.strategy.guide, a.strategy.caps, use.mostInPool()
	again := w.pack(st)
	again.used.spotCeiling = 0
	if again.waiting() > a.waiting() ||
		again.capacityTypePrice(instancetypes.OnDemand) > a.capacityTypePrice(instancetypes.OnDemand) {
		return a
	}
	return again
}

// capacityTypePrice is what the new nodes of a capacity type cost.
func (a *solution) capacityTypePrice(capacityType string) float64 {
	sum := 0.0
	for _, b := range a.bins {
		if b.offer != nil && b.offer.CapacityType == capacityType {
			sum += b.offer.Price
		}
	}
	return sum
}

// diversifyLaunches gives nodes of pools of capacity that have more than their share another choice, the cheapest spot
// offer that there is. A node that has none stays.
func (pw *planWriter) diversifyLaunches(list []plannedNode) {
	use := pw.a.w.nodes.standingSpot()
	for i := range list {
		use.add(list[i].choice.Offer, list[i].choice.model.typ.Capacity.CPU, 1)
	}
	var full []instancetypes.Offer
	for i := len(list) - 1; i >= 0; i-- {
		x := &list[i]
		from := x.choice.Offer
		if !use.exceedsShare(from) {
			continue
		}
		if !slices.Contains(full, from) {
			full = append(full, from)
		}
		use.add(from, -x.choice.model.typ.Capacity.CPU, 0)
		var best *poolOffering
		for _, opt := range x.opts {
			for _, o := range opt.offers { // cheapest first
				if best != nil && o.Price >= best.Price {
					break
				}
				cpu := o.model.typ.Capacity.CPU
				use.add(o.Offer, cpu, 0)
				if o.CapacityType == instancetypes.Spot && !slices.Contains(full, o.Offer) &&
					!use.exceedsShare(o.Offer) {
					best = o
				}
				use.add(o.Offer, -cpu, 0)
			}
		}
		if best != nil {
			x.choice, x.avoid = best, slices.Clone(full)
		}
		use.add(x.choice.Offer, x.choice.model.typ.Capacity.CPU, 0)
	}
	for i := range list {
		list[i].keepOut(pw)
	}
}

// keepOut leaves out of what a launch names the pools of capacity that the node is to stay out of: the type where
// enough others are left, else the zone. Where neither can be missed the choice of EC2 has to do.
func (x *plannedNode) keepOut(pw *planWriter) {
	_, enough := pw.a.w.options.priceFlexibility()
	p := x.bin.offer.model.pool
	strict := p.minValues() // then every type may be needed
	if len(x.avoid) > 0 && !strict && len(p.Limited) == 0 {
		x.replaceTypes(pw)
	}
	for _, from := range x.avoid {
		types := slices.DeleteFunc(slices.Clone(x.opts),
			func(o typeOption) bool { return o.model.typ.Name == from.Type })
		zones := optionsOutsideZone(x.opts, from.Zone)
		switch {
		case from.Type != x.choice.model.typ.Name && spotOptions(types) >= enough && !strict:
			x.opts = types
		case from.Zone != x.choice.Zone && spotOptions(zones) >= min(enough, spotOptions(x.opts)) &&
			(!strict || len(zones) == len(x.opts)):
			x.opts = zones
		}
	}
	slices.SortFunc(x.opts, compareOptionPrice)
	if best := x.opts[0].best; x.choice.Price > best.Price {
		x.choice = best // the price of a claim is that of the cheapest it may become, crowded or not
	}
}

// replaceTypes puts other types in the place of those that are to be avoided.
func (x *plannedNode) replaceTypes(pw *planWriter) {
	p := x.bin.offer.model.pool
	all, _ := pw.a.w.options.launchOptions(p, pw.used[p.id], x.bin.load, true)
	others := slices.DeleteFunc(slices.Clone(all), func(o typeOption) bool {
		return o.model != x.choice.model && slices.ContainsFunc(x.avoid,
			func(from instancetypes.Offer) bool { return from.Type == o.model.typ.Name })
	})
	opts := pw.a.w.options.chooseOptions(others, x.set)
	if spotOptions(opts) >= spotOptions(x.opts) &&
		slices.ContainsFunc(opts, func(o typeOption) bool { return o.model == x.choice.model }) {
		x.opts = opts
	}
}

func spotOptions(opts []typeOption) int {
	n := 0
	for _, o := range opts {
		if o.spot {
			n++
		}
	}
	return n
}

// optionsOutsideZone are the options outside the zone.
func optionsOutsideZone(opts []typeOption, zone string) []typeOption {
	var out []typeOption
	for _, opt := range opts {
		opt.offers = slices.DeleteFunc(slices.Clone(opt.offers), func(o *poolOffering) bool { return o.Zone == zone })
		if len(opt.offers) > 0 {
			opt.best = opt.offers[0]
			opt.spot = slices.ContainsFunc(opt.offers,
				func(o *poolOffering) bool { return o.CapacityType == instancetypes.Spot })
			out = append(out, opt)
		}
	}
	return out
}
