package binpack

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// mostTypes is the number of types that one launch can name.
const mostTypes = 60

const defaultPriceMargin = 1.2

const defaultSpotTypes = 15

// priceFlexibility is how much dearer than the cheapest type others may be that a launch names, as a factor, and how
// many types a spot launch names at any price.
func (f *optionFinder) priceFlexibility() (margin float64, minSpotInstanceTypes int) {
	return cmp.Or(f.rules.InstanceTypePriceFactor, defaultPriceMargin),
		cmp.Or(f.rules.MinSpotInstanceTypes, defaultSpotTypes)
}

// chooseOptions keeps the cheapest options: those within the price margin, more where spot needs them, and those that
// the pool's minValues need.
func (f *optionFinder) chooseOptions(opts []typeOption, set requirements.Set) []typeOption {
	margin, minSpotInstanceTypes := f.priceFlexibility()
	keep := markNeededForMinValues(opts, set)
	n := 0
	for _, is := range keep {
		if is {
			n++
		}
	}
	for i, o := range opts {
		if !keep[i] && n < mostTypes && (o.best.Price <= opts[0].best.Price*margin || o.spot &&
			n < minSpotInstanceTypes) {
			keep[i] = true
			n++
		}
	}
	var out []typeOption
	for i, o := range opts {
		if keep[i] {
			out = append(out, o)
		}
	}
	return out
}

// optionLimit tells when no launch would name any more options.
type optionLimit struct {
	margin               float64
	minSpotInstanceTypes int // to be named at any price
}

func (f *optionFinder) optionLimitFor(set requirements.Set) optionLimit {
	margin, minSpotInstanceTypes := f.priceFlexibility()
	if !set.Has(instancetypes.LabelCapacityType, instancetypes.Spot) {
		minSpotInstanceTypes = 0
	}
	return optionLimit{margin, minSpotInstanceTypes}
}

// reachedAt reports whether the options are enough when all others cost the price at least.
func (e optionLimit) reachedAt(list []typeOption, price float64) bool {
	if len(list) == 0 {
		return false
	}
	least := list[0].best.Price
	for _, o := range list {
		least = min(least, o.best.Price)
	}
	n := 0
	for _, o := range list {
		if o.best.Price <= min(price, least*e.margin) || o.spot && o.best.Price <= price {
			n++
		}
	}
	return n >= mostTypes || price > least*e.margin && n >= e.minSpotInstanceTypes
}

// typeOption is a model that can take the place of the one a node was opened with, by its cheapest offer.
type typeOption struct {
	model  *poolInstanceType
	offers []*poolOffering
	best   *poolOffering
	spot   bool
}

// optionFinder tells what may stand in for the offer of a new node.
type optionFinder struct {
	dims  podclass.Dims
	rules *cluster.Settings
	known map[string]*loadRequirements
	asked []int32 // of the loads asked about last
	last  lastOptions
}

// launchOptions lists the models of the pool that can hold the loads as things are sold now, cheapest first, where the
// pool has that in use. The list may end where the rest is so dear that no launch names it, unless all are asked for.
func (f *optionFinder) launchOptions(p *pool, inUse poolUsage, loads []podLoad, all bool) ([]typeOption,
	requirements.Set) {
	h := f.requirementsOf(p, loads)
	used, ports := f.sumLoads(loads)
	alone := len(p.Limited) == 0 && len(ports) == 0 // then the same node was perhaps asked for just before
	if alone && f.last.id == h.id && f.last.all == all && slices.Equal(f.last.used, used) {
		return f.last.options, h.set
	}
	var out []typeOption
	e := f.optionLimitFor(h.set)
	for i, m := range p.forSale { // by the cheapest offer that each has
		if !all && e.reachedAt(out, m.sale[0].Price) {
			break
		}
		if !m.hasRoomFor(used) {
			continue
		}
		opt, ok := h.optionFor(i).holding(used, ports)
		if ok && len(p.exceededLimits(inUse, m.typ.Capacity)) == 0 {
			out = append(out, opt)
		}
	}
	slices.SortFunc(out, compareOptionPrice)
	if alone {
		f.last = lastOptions{h.id, all, used, out}
	}
	return out, h.set
}

// requirementsOf tells what a node of the pool must meet to hold the loads (the pool's own requirements and, of each
// load, the alternative that was chosen for it) and what can.
func (f *optionFinder) requirementsOf(p *pool, loads []podLoad) *loadRequirements {
	f.asked = f.asked[:0]
	for _, l := range loads {
		f.asked = append(f.asked, int32(l.admit.Number)<<8|int32(min(l.alt, 255)))
	}
	slices.Sort(f.asked)
	f.asked = slices.Compact(f.asked)
	id := strconv.AppendInt(nil, int64(p.id), 10)
	for _, x := range f.asked {
		id = strconv.AppendInt(append(id, ' '), int64(x), 36)
	}
	if h, ok := f.known[string(id)]; ok && !slices.ContainsFunc(loads, func(l podLoad) bool { return l.alt >= 255 }) {
		return h
	}
	h := &loadRequirements{id: string(id), set: p.req, pool: p, options: make([]*typeOption, len(p.forSale))}
	keys := map[string]int{} // how many ask for it
	for i, l := range loads {
		if slices.ContainsFunc(loads[:i], func(o podLoad) bool { return o.admit == l.admit && o.alt == l.alt }) {
			continue
		}
		h.loads = append(h.loads, podLoad{admit: l.admit, alt: l.alt})
		alt := l.admit.Alternatives[l.alt]
		h.set = h.set.AndSet(alt)
		for _, r := range alt.All() {
			keys[r.Key]++
		}
	}
	for _, r := range h.set.All() {
		if keys[r.Key] > 1 && !podclass.VariesByOffering(r.Key) {
			h.joint = append(h.joint, r)
		}
	}
	f.known[h.id] = h
	return h
}

// loadRequirements is what a node of a pool must meet to hold some loads, and the models that can, as far as they were
// asked for.
type loadRequirements struct {
	id    string
	set   requirements.Set
	pool  *pool
	loads []podLoad
	joint []requirements.Requirement // what one alone may leave room for, and all together not
	// by place of the model among those for sale; nil until asked, without offers when it cannot be
	options []*typeOption
}

// optionFor is the pool's model for sale at that place with the offers, cheapest first, that every load and the joint
// requirements of all allow.
func (h *loadRequirements) optionFor(i int) *typeOption {
	if h.options[i] == nil {
		m := h.pool.forSale[i]
		opt := &typeOption{model: m}
		if m.meetsRequirements(h.joint) {
			for _, o := range m.sale {
				if loadsAllowed(h.loads, o) {
					opt.offers = append(opt.offers, o)
				}
			}
		}
		h.options[i] = opt
	}
	return h.options[i]
}

// holding is the option with those of its offers, cheapest first, that have so much room and the ports free; false when
// none has.
func (x *typeOption) holding(used []int64, ports []cluster.HostPort) (typeOption, bool) {
	opt := typeOption{model: x.model}
	for _, o := range x.offers {
		if !atLeast(o.room, used) || portsConflict(ports, o.ports) {
			continue
		}
		if opt.best == nil {
			opt.best = o
		}
		opt.offers = append(opt.offers, o)
		opt.spot = opt.spot || o.CapacityType == instancetypes.Spot
	}
	return opt, opt.best != nil
}

// lastOptions is what options answered last.
type lastOptions struct {
	id      string
	all     bool
	used    []int64
	options []typeOption
}

// compareOptionPrice orders options by price, among equals by name.
func compareOptionPrice(a, b typeOption) int {
	return cmp.Or(cmp.Compare(a.best.Price, b.best.Price), strings.Compare(a.model.typ.Name, b.model.typ.Name))
}

// hasRoomFor reports whether some node of the model has so much room.
func (m *poolInstanceType) hasRoomFor(used []int64) bool {
	return slices.ContainsFunc(m.sale, func(o *poolOffering) bool { return atLeast(o.room, used) })
}

// loadsAllowed reports whether each of the loads may be on a node of the offer.
func loadsAllowed(loads []podLoad, o *poolOffering) bool {
	for _, l := range loads {
		if !o.meetsAlternative(l.admit, l.alt) {
			return false
		}
	}
	return true
}

// meetsRequirements reports whether the model's nodes can have labels that meet the requirements.
func (m *poolInstanceType) meetsRequirements(list []requirements.Requirement) bool {
	for _, r := range list {
		mine, ok := m.labelValues(r.Key)
		if !ok && !r.AllowsAbsent() || ok && !mine.Overlaps(r) {
			return false
		}
	}
	return true
}

// sumLoads is what the loads need together, and their host ports.
func (f *optionFinder) sumLoads(loads []podLoad) (used []int64, ports []cluster.HostPort) {
	used = make([]int64, len(f.dims))
	for _, l := range loads {
		for i, x := range l.view.Class.Need {
			used[i] += x * int64(len(l.pods))
		}
		ports = append(ports, l.view.Class.Pod.HostPorts...)
	}
	addSharedVolumes(f.dims, used, loads)
	return used, ports
}
