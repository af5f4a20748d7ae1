package pack

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"joiner/pkg/catalog"
	"joiner/pkg/require"
)

// option is a model that can take the place of the one a node was opened with, by its cheapest offer.
type option struct {
	model  *model
	offers []*offer
	best   *offer
	spot   bool
}

// held is what a node of a pool must meet to hold some loads, and the models that can, as far as they were asked for.
type held struct {
	id      string
	set     require.Set
	pool    *pool
	loads   []load
	joint   []require.Requirement // what one alone may leave room for, and all together not
	options []*option             // by place of the model among those for sale; nil until asked, without offers when it cannot be
}

// held tells what a node of the pool must meet to hold the loads (the pool's own requirements and, of each load, the
// alternative that was chosen for it) and what can.
func (w *world) held(p *pool, loads []load) *held {
	w.asked = w.asked[:0]
	for _, l := range loads {
		w.asked = append(w.asked, int32(l.admit.number)<<8|int32(min(l.alt, 255)))
	}
	slices.Sort(w.asked)
	w.asked = slices.Compact(w.asked)
	id := strconv.AppendInt(nil, int64(p.id), 10)
	for _, x := range w.asked {
		id = strconv.AppendInt(append(id, ' '), int64(x), 36)
	}
	if h, ok := w.holders[string(id)]; ok && !slices.ContainsFunc(loads, func(l load) bool { return l.alt >= 255 }) {
		return h
	}
	h := &held{id: string(id), set: p.req, pool: p, options: make([]*option, len(p.forSale))}
	keys := map[string]int{} // how many ask for it
	for i, l := range loads {
		if slices.ContainsFunc(loads[:i], func(o load) bool { return o.admit == l.admit && o.alt == l.alt }) {
			continue
		}
		h.loads = append(h.loads, load{admit: l.admit, alt: l.alt})
		alt := l.admit.alternative[l.alt]
		h.set = h.set.AndSet(alt)
		for _, r := range alt.All() {
			keys[r.Key]++
		}
	}
	for _, r := range h.set.All() {
		if keys[r.Key] > 1 && !perOffer(r.Key) {
			h.joint = append(h.joint, r)
		}
	}
	w.holders[h.id] = h
	return h
}

// options lists the models that can hold the loads as things are sold now, cheapest first. The list may end where the rest
// is so dear that no launch names it, unless all are asked for.
func (a *attempt) options(p *pool, loads []load, all bool) ([]option, require.Set) {
	w := a.w
	h := w.held(p, loads)
	used, ports := w.sum(loads)
	alone := len(p.Limited) == 0 && len(ports) == 0 // then the same node was perhaps asked for just before
	if alone && w.last.id == h.id && w.last.all == all && slices.Equal(w.last.used, used) {
		return w.last.options, h.set
	}
	var out []option
	e := w.enough(h.set)
	for i, m := range p.forSale { // by the cheapest offer that each has
		if !all && e.has(out, m.sale[0].Price) {
			break
		}
		if !m.holds(used) {
			continue
		}
		opt := option{model: m}
		for _, o := range h.option(i).offers { // cheapest first
			if !atLeast(o.room, used) || conflict(ports, o.ports) {
				continue
			}
			if opt.best == nil {
				opt.best = o
			}
			opt.offers = append(opt.offers, o)
			opt.spot = opt.spot || o.CapacityType == catalog.Spot
		}
		if opt.best != nil && len(p.exceeded(a.usage[p.id], m.typ.Capacity)) == 0 {
			out = append(out, opt)
		}
	}
	slices.SortFunc(out, cheaper)
	if alone {
		w.last = asked{h.id, all, used, out}
	}
	return out, h.set
}

// asked is what options answered last.
type asked struct {
	id      string
	all     bool
	used    []int64
	options []option
}

// flexibility is how much dearer than the cheapest type others may be that a launch names, as a factor, and how many types a
// spot launch names at any price.
func (w *world) flexibility() (margin float64, spotTypes int) {
	return cmp.Or(w.s.Rules.PriceMargin, defaultPriceMargin), cmp.Or(w.s.Rules.SpotTypes, defaultSpotTypes)
}

func cheaper(a, b option) int {
	return cmp.Or(cmp.Compare(a.best.Price, b.best.Price), strings.Compare(a.model.typ.Name, b.model.typ.Name))
}

// holds reports whether some node of the model has so much room.
func (m *model) holds(used []int64) bool {
	return slices.ContainsFunc(m.sale, func(o *offer) bool { return atLeast(o.room, used) })
}

// option is the pool's model for sale at that place with the offers, cheapest first, that every load and the joint requirements of
// all allow.
func (h *held) option(i int) *option {
	if h.options[i] == nil {
		m := h.pool.forSale[i]
		opt := &option{model: m}
		if m.meets(h.joint) {
			for _, o := range m.sale {
				if allow(h.loads, o) {
					opt.offers = append(opt.offers, o)
				}
			}
		}
		h.options[i] = opt
	}
	return h.options[i]
}

// enough tells when no launch would name any more options.
type enough struct {
	margin    float64
	spotTypes int // to be named at any price
}

func (w *world) enough(set require.Set) enough {
	margin, spotTypes := w.flexibility()
	if !set.Has(labelCapacity, catalog.Spot) {
		spotTypes = 0
	}
	return enough{margin, spotTypes}
}

// has reports whether the options are enough when all others cost the price at least.
func (e enough) has(list []option, price float64) bool {
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
	return n >= mostTypes || price > least*e.margin && n >= e.spotTypes
}

// allow reports whether each of the loads may be on a node of the offer.
func allow(loads []load, o *offer) bool {
	for _, l := range loads {
		if !l.admit.holds(l.alt, o) {
			return false
		}
	}
	return true
}

// meets reports whether the model's nodes can have labels that meet the requirements.
func (m *model) meets(list []require.Requirement) bool {
	for _, r := range list {
		mine, ok := m.label(r.Key)
		if !ok && !r.AllowsAbsent() || ok && !mine.Overlaps(r) {
			return false
		}
	}
	return true
}
