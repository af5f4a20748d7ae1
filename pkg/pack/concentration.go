package pack

import (
	"cmp"
	"slices"

	"joiner/pkg/catalog"
)

const (
	// defaultSpotPoolShare is the part of all spot capacity that may be in one instance type in one zone.
	defaultSpotPoolShare = 0.8
	// fewSpotNodes is up to how many spot nodes there is no such limit.
	fewSpotNodes = 4
)

// spotUse is the spot capacity of a cluster, in millicores.
type spotUse struct {
	byPool map[catalog.Offer]int64
	total  int64
	nodes  int
}

func (u *spotUse) add(o catalog.Offer, cpu int64, nodes int) {
	if o.CapacityType == catalog.Spot {
		u.byPool[o] += cpu
		u.total += cpu
		u.nodes += nodes
	}
}

// spotPoolShare is how much of all spot capacity may be in one pool of capacity, that is one type in one zone.
func (w *world) spotPoolShare() float64 {
	return cmp.Or(w.s.Rules.SpotPoolShare, defaultSpotPoolShare)
}

// over reports whether the pool of capacity has more than its share.
func (w *world) over(u spotUse, o catalog.Offer) bool {
	return o.CapacityType == catalog.Spot && u.nodes > fewSpotNodes && float64(u.byPool[o]) > w.spotPoolShare()*float64(u.total)
}

// crowded reports whether any pool of capacity has more than its share.
func (w *world) crowded(u spotUse) bool {
	for o := range u.byPool {
		if w.over(u, o) {
			return true
		}
	}
	return false
}

// standingSpot is the spot capacity of the nodes that stay.
func (w *world) standingSpot() spotUse {
	u := spotUse{byPool: map[catalog.Offer]int64{}}
	for _, h := range w.all {
		if h.Condemned() {
			continue
		}
		l := h.Labels()
		u.add(catalog.Offer{CapacityType: l[labelCapacity], Type: l[labelType], Zone: l[labelZone]}, h.Capacity().CPU, 1)
	}
	return u
}

// spotUse is the spot capacity once the attempt's new nodes are there, each as the offer it was opened with.
func (a *attempt) spotUse() spotUse {
	u := a.w.standingSpot()
	for _, b := range a.bins {
		if b.offer != nil {
			u.add(b.offer.Offer, b.offer.model.typ.Capacity.CPU, 1)
		}
	}
	return u
}

// dispersed is the attempt again with less in one pool of capacity, where it has more than that pool's share in it: with other
// types, which may be cheaper than the same type elsewhere. What comes out must place as many pods, and as many of them on spot;
// else launches finds other zones and types for the nodes that there are.
func (w *world) dispersed(a *attempt, byPriority bool) *attempt {
	use := a.spotUse()
	if !w.crowded(use) {
		return a
	}
	w.ceiling = int64(w.spotPoolShare() * float64(use.total))
	again := w.pass(byPriority, a.by)
	w.ceiling = 0
	if again.waiting(w.kinds) > a.waiting(w.kinds) || again.paid(catalog.OnDemand) > a.paid(catalog.OnDemand) {
		return a
	}
	return again
}

// paid is what the new nodes of a capacity type cost.
func (a *attempt) paid(capacityType string) float64 {
	sum := 0.0
	for _, b := range a.bins {
		if b.offer != nil && b.offer.CapacityType == capacityType {
			sum += b.offer.Price
		}
	}
	return sum
}

// allowance is how many more nodes of the offer, of at most so many, its reservation or commitment and the ceiling leave.
func (a *attempt) allowance(o *offer, most int) int {
	if id, amount := o.slot(); amount > 0 {
		most = int(min(int64(most), max(0, a.slots[id])/amount))
	}
	cpu := o.model.typ.Capacity.CPU
	if a.w.ceiling == 0 || o.CapacityType != catalog.Spot || cpu <= 0 {
		return most
	}
	return int(min(int64(most), max(0, a.w.ceiling-a.spot.byPool[o.Offer])/cpu))
}

// disperse gives nodes of pools of capacity that have more than their share another choice, the cheapest spot offer that
// there is. A node that has none stays.
func (a *attempt) disperse(list []opening) {
	use := a.w.standingSpot()
	for i := range list {
		use.add(list[i].choice.Offer, list[i].choice.model.typ.Capacity.CPU, 1)
	}
	var full []catalog.Offer
	for i := len(list) - 1; i >= 0; i-- {
		x := &list[i]
		from := x.choice.Offer
		if !a.w.over(use, from) {
			continue
		}
		if !slices.Contains(full, from) {
			full = append(full, from)
		}
		use.add(from, -x.choice.model.typ.Capacity.CPU, 0)
		var best *offer
		for _, opt := range x.opts {
			for _, o := range opt.offers { // cheapest first
				if best != nil && o.Price >= best.Price {
					break
				}
				cpu := o.model.typ.Capacity.CPU
				use.add(o.Offer, cpu, 0)
				if o.CapacityType == catalog.Spot && !slices.Contains(full, o.Offer) && !a.w.over(use, o.Offer) {
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
		list[i].keepOut(a)
	}
}

// keepOut leaves out of what a launch names the pools of capacity that the node is to stay out of: the type where enough others are
// left, else the zone. Where neither can be missed the choice of EC2 has to do.
func (x *opening) keepOut(a *attempt) {
	_, enough := a.w.flexibility()
	p := x.bin.offer.model.pool
	strict := p.minValues() // then every type may be needed
	if len(x.avoid) > 0 && !strict && len(p.Limited) == 0 {
		x.widen(a)
	}
	for _, from := range x.avoid {
		types := slices.DeleteFunc(slices.Clone(x.opts), func(o option) bool { return o.model.typ.Name == from.Type })
		zones := without(x.opts, from.Zone)
		switch {
		case from.Type != x.choice.model.typ.Name && spots(types) >= enough && !strict:
			x.opts = types
		case from.Zone != x.choice.Zone && spots(zones) >= min(enough, spots(x.opts)) && (!strict || len(zones) == len(x.opts)):
			x.opts = zones
		}
	}
	slices.SortFunc(x.opts, cheaper)
	if best := x.opts[0].best; x.choice.Price > best.Price {
		x.choice = best // the price of a claim is that of the cheapest it may become, crowded or not
	}
}

// widen puts other types in the place of those that are to be avoided.
func (x *opening) widen(a *attempt) {
	all, _ := a.options(x.bin.offer.model.pool, x.bin.load, true)
	others := slices.DeleteFunc(slices.Clone(all), func(o option) bool {
		return o.model != x.choice.model && slices.ContainsFunc(x.avoid, func(from catalog.Offer) bool { return from.Type == o.model.typ.Name })
	})
	opts := a.w.choose(others, x.set)
	if spots(opts) >= spots(x.opts) && slices.ContainsFunc(opts, func(o option) bool { return o.model == x.choice.model }) {
		x.opts = opts
	}
}

func spots(opts []option) int {
	n := 0
	for _, o := range opts {
		if o.spot {
			n++
		}
	}
	return n
}

// without are the options outside the zone.
func without(opts []option, zone string) []option {
	var out []option
	for _, opt := range opts {
		opt.offers = slices.DeleteFunc(slices.Clone(opt.offers), func(o *offer) bool { return o.Zone == zone })
		if len(opt.offers) > 0 {
			opt.best = opt.offers[0]
			opt.spot = slices.ContainsFunc(opt.offers, func(o *offer) bool { return o.CapacityType == catalog.Spot })
			out = append(out, opt)
		}
	}
	return out
}
