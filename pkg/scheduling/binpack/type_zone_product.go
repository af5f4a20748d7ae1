package binpack

import (
	"slices"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
)

// ensureEveryCombinationFits makes sure that a claim allows no mix of its types, zones and capacity types that does not
// hold its pods. A claim lists the three apart, so every mix is allowed, and where a DaemonSet runs in some zones only,
// a type may be too small in those. The zone goes first, then the capacity type, then the type; what was chosen stays.
func (x *plannedNode) ensureEveryCombinationFits(f *optionFinder) {
	if x.bin.offer.Limited() || !slices.ContainsFunc(x.opts,
		func(o typeOption) bool { return o.model.differsByOffer() }) {
		return
	}
	used, ports := f.sumLoads(x.bin.load)
	keep := func(ok func(*poolOffering) bool) {
		var out []typeOption
		for _, opt := range x.opts {
			opt.offers = slices.DeleteFunc(slices.Clone(opt.offers), func(o *poolOffering) bool { return !ok(o) })
			if len(opt.offers) > 0 {
				opt.best = opt.offers[0]
				opt.spot = slices.ContainsFunc(opt.offers,
					func(o *poolOffering) bool { return o.CapacityType == instancetypes.Spot })
				out = append(out, opt)
			}
		}
		x.opts = out
	}
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
	return slices.ContainsFunc(loads, func(l podLoad) bool { return l.admit.excludes(o) })
}

// differsByOffer reports whether nodes of the model have more room, or other ports taken, in one place than in another.
func (m *poolInstanceType) differsByOffer() bool {
	return slices.ContainsFunc(m.sells, func(o *poolOffering) bool {
		return !slices.Equal(o.daemons, m.sells[0].daemons) || !slices.Equal(o.room, m.sells[0].room)
	})
}

// sumLoads is what the loads need together, and their host ports.
func (f *optionFinder) sumLoads(loads []podLoad) (used []int64, ports []cluster.HostPort) {
	used = make([]int64, len(f.dims))
	for _, l := range loads {
		for i, x := range l.view.kind.need {
			used[i] += x * int64(len(l.pods))
		}
		ports = append(ports, l.view.kind.pod.HostPorts...)
	}
	return used, ports
}
