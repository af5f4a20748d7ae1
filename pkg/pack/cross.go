package pack

import (
	"slices"

	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
)

// uncross makes sure that a claim allows no mix of its types, zones and capacity types that does not hold its pods. A claim lists the
// three apart, so every mix is allowed, and where a DaemonSet runs in some zones only, a type may be too small in those. The zone goes
// first, then the capacity type, then the type; what was chosen stays.
func (x *opening) uncross(a *attempt) {
	if x.bin.offer.Limited() || !slices.ContainsFunc(x.opts, func(o option) bool { return o.model.uneven() }) {
		return
	}
	used, ports := a.w.sum(x.bin.load)
	keep := func(ok func(*offer) bool) {
		var out []option
		for _, opt := range x.opts {
			opt.offers = slices.DeleteFunc(slices.Clone(opt.offers), func(o *offer) bool { return !ok(o) })
			if len(opt.offers) > 0 {
				opt.best = opt.offers[0]
				opt.spot = slices.ContainsFunc(opt.offers, func(o *offer) bool { return o.CapacityType == catalog.Spot })
				out = append(out, opt)
			}
		}
		x.opts = out
	}
	for bad := x.tooSmall(used, ports); bad != nil; bad = x.tooSmall(used, ports) {
		switch {
		case bad.Zone != x.choice.Zone:
			keep(func(o *offer) bool { return o.Zone != bad.Zone })
		case bad.CapacityType != x.choice.CapacityType:
			keep(func(o *offer) bool { return o.CapacityType != bad.CapacityType })
		default:
			keep(func(o *offer) bool { return o.model != bad.model })
		}
	}
	slices.SortFunc(x.opts, cheaper)
}

// tooSmall finds an offer that the claim would allow, now or later, and that does not hold its pods.
func (x *opening) tooSmall(used []int64, ports []cluster.HostPort) *offer {
	zones, capacities := map[string]bool{}, map[string]bool{}
	for _, opt := range x.opts {
		for _, o := range opt.offers {
			zones[o.Zone], capacities[o.CapacityType] = true, true
		}
	}
	for _, opt := range x.opts {
		for _, o := range opt.model.sells {
			if zones[o.Zone] && capacities[o.CapacityType] && o.Meets(x.set) && (!atLeast(o.room, used) || conflict(ports, o.ports) || excluded(x.bin.load, o)) {
				return o
			}
		}
	}
	return nil
}

// excluded reports whether DaemonSets that nodes of the offer run keep any of the loads away.
func excluded(loads []load, o *offer) bool {
	return slices.ContainsFunc(loads, func(l load) bool { return l.admit.excludes(o) })
}

// uneven reports whether nodes of the model have more room, or other ports taken, in one place than in another.
func (m *model) uneven() bool {
	return slices.ContainsFunc(m.sells, func(o *offer) bool {
		return !slices.Equal(o.daemons, m.sells[0].daemons) || !slices.Equal(o.room, m.sells[0].room)
	})
}

// sum is what the loads need together, and their host ports.
func (w *world) sum(loads []load) (used []int64, ports []cluster.HostPort) {
	used = make([]int64, len(w.dims))
	for _, l := range loads {
		for i, x := range l.view.kind.need {
			used[i] += x * int64(len(l.pods))
		}
		ports = append(ports, l.view.kind.pod.HostPorts...)
	}
	return used, ports
}
