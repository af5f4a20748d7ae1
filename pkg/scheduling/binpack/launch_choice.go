package binpack

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// keepOffers are the options with those of their offers that are ok, without options that have none.
func keepOffers(opts []typeOption, ok func(*poolOffering) bool) []typeOption {
	var out []typeOption
	for _, opt := range opts {
		opt.offers = slices.DeleteFunc(slices.Clone(opt.offers), func(o *poolOffering) bool { return !ok(o) })
		if len(opt.offers) > 0 {
			opt.best = opt.offers[0]
			opt.spot = slices.ContainsFunc(opt.offers,
				func(o *poolOffering) bool { return o.CapacityType == instancetypes.Spot })
			out = append(out, opt)
		}
	}
	return out
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

// ensureEveryCombinationFits makes sure that a claim allows no mix of its types, zones and capacity types that does not
// hold its pods. A claim lists the three apart, so every mix is allowed, and where a DaemonSet runs in some zones only,
// a type may be too small in those. The zone goes first, then the capacity type, then the type; what was chosen stays.
func (x *plannedNode) ensureEveryCombinationFits(f *optionFinder) {
	if x.bin.offer.Limited() || !slices.ContainsFunc(x.opts,
		func(o typeOption) bool { return o.model.differsByOffer() }) {
		return
	}
	used, ports := f.sumLoads(x.bin.load)
	keep := func(ok func(*poolOffering) bool) { x.opts = keepOffers(x.opts, ok) }
	for bad := x.tooSmall(used, ports); bad != nil; bad = x.tooSmall(used, ports) {
		switch {
		case bad.Zone != x.choice.Zone:
			keep(func(o *poolOffering) bool { return o.Zone != bad.Zone })
		case bad.CapacityType != x.choice.CapacityType:
			keep(func(o *poolOffering) bool { return o.CapacityType != bad.CapacityType })
		default:
			keep(func(o *poolOffering) bool { return o.model != bad.model })
		}
	}
	slices.SortFunc(x.opts, compareOptionPrice)
}

// tooSmall finds an offer that the claim would allow, now or later, and that does not hold its pods.
func (x *plannedNode) tooSmall(used []int64, ports []cluster.HostPort) *poolOffering {
	zones, capacities := map[string]bool{}, map[string]bool{}
	for _, opt := range x.opts {
		for _, o := range opt.offers {
			zones[o.Zone], capacities[o.CapacityType] = true, true
		}
	}
	for _, opt := range x.opts {
		for _, o := range opt.model.sells {
			if zones[o.Zone] && capacities[o.CapacityType] && o.Meets(x.set) &&
				(!atLeast(o.room, used) || portsConflict(ports, o.ports) || excluded(x.bin.load, o)) {
				return o
			}
		}
	}
	return nil
}

// excluded reports whether DaemonSets that nodes of the offer run keep any of the loads away.
func excluded(loads []podLoad, o *poolOffering) bool {
	return slices.ContainsFunc(loads, func(l podLoad) bool { return o.keepsOff(l.admit) })
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
		zones := keepOffers(x.opts, func(o *poolOffering) bool { return o.Zone != from.Zone })
		switch {
		case from.Type != x.choice.model.typ.Name && spotOptions(types) >= enough && !strict:
			x.opts = types
		case from.Zone != x.choice.Zone && spotOptions(zones) >= min(enough, spotOptions(x.opts)) &&
			(!strict || len(zones) == len(x.opts) && lowerMinValues(x.set, zones) == nil):
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
