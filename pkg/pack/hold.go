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

// held is what a node of a pool must meet to hold some loads, and the models that can, cheapest first.
type held struct {
	id      string
	set     require.Set
	options []option
}

// held tells what a node of the pool must meet to hold the loads (the pool's own requirements and, of each load, the
// alternative that was chosen for it) and what can.
func (w *world) held(p *pool, loads []load) held {
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
	h := held{id: string(id), set: p.req}
	keys := map[string]int{} // how many ask for it
	for i, l := range loads {
		if slices.ContainsFunc(loads[:i], func(o load) bool { return o.admit == l.admit && o.alt == l.alt }) {
			continue
		}
		alt := l.admit.alternative[l.alt]
		h.set = h.set.AndSet(alt)
		for _, r := range alt.All() {
			keys[r.Key]++
		}
	}
	var joint []require.Requirement // what one alone may leave room for, and all together not
	for _, r := range h.set.All() {
		if keys[r.Key] > 1 && !perOffer(r.Key) {
			joint = append(joint, r)
		}
	}
	h.options = p.holders(loads, joint)
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
	margin, spotTypes := w.flexibility()
	var out []option
	sorted, kept := true, 0
	for _, h := range h.options {
		if !all && (kept >= mostTypes || kept >= spotTypes && h.best.Price > out[0].best.Price*margin) {
			break
		}
		opt := option{model: h.model}
		for _, o := range h.offers { // cheapest first
			if !atLeast(o.room, used) || conflict(ports, o.ports) {
				continue
			}
			if opt.best == nil {
				opt.best = o
			}
			opt.offers = append(opt.offers, o)
			opt.spot = opt.spot || o.CapacityType == catalog.Spot
		}
		if opt.best == nil || len(p.exceeded(a.usage[p.id], opt.model.typ.Capacity)) > 0 {
			continue
		}
		sorted = sorted && opt.best == h.best
		out = append(out, opt)
		if opt.spot || opt.best.Price <= out[0].best.Price*margin {
			kept++
		}
	}
	if !sorted {
		slices.SortFunc(out, cheaper)
	}
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

// holders lists the models, cheapest first, that have offers available now which every load and the joint requirements of all
// allow.
func (p *pool) holders(loads []load, joint []require.Requirement) []option {
	var out []option
	at := make([]int, len(p.models)) // by model: 1 + its place in out, -1 when it cannot be
	for _, o := range p.sale {
		i := at[o.model.id]
		if i < 0 || !allow(loads, o) {
			continue
		}
		if i == 0 {
			if !o.model.meets(joint) {
				at[o.model.id] = -1
				continue
			}
			out = append(out, option{model: o.model, best: o})
			i = len(out)
			at[o.model.id] = i
		}
		out[i-1].offers = append(out[i-1].offers, o)
	}
	slices.SortFunc(out, cheaper)
	return out
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
