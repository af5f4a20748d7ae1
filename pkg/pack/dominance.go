package pack

import (
	"cmp"
	"slices"
	"strconv"

	"joiner/pkg/require"
)

// entry is an offer with the admissions that let pods be on it, as bits.
type entry struct {
	offer *offer
	bits  []uint64
}

// forSale reports whether the offer is available in any number.
func (o *offer) forSale() bool { return o.Available && !o.Limited() }

// forSale are the offers that are available in any number, the cheapest first, among equals those with more room.
func forSale(offers []*offer) []*offer {
	return byPrice(slices.DeleteFunc(slices.Clone(offers), func(o *offer) bool { return !o.forSale() }))
}

// byPrice are the offers, the cheapest first, among equals those with more room.
func byPrice(offers []*offer) []*offer {
	type tag struct { // what decides nearly always, beside the pointer: looking behind each takes its time
		price float64
		offer *offer
	}
	tags := make([]tag, 0, len(offers))
	for _, o := range offers {
		tags = append(tags, tag{o.Price, o})
	}
	slices.SortFunc(tags, func(x, y tag) int {
		if x.price != y.price {
			return cmp.Compare(x.price, y.price)
		}
		a, b := x.offer, y.offer
		return cmp.Or(slices.Compare(b.room, a.room), cmp.Compare(a.model.pool.id, b.model.pool.id), cmp.Compare(a.index, b.index))
	})
	out := make([]*offer, len(tags))
	for i, t := range tags {
		out[i] = t.offer
	}
	return out
}

// undominated leaves out, of offers in the order of forSale, those that admit nothing or are beaten by one that costs no more, admits
// as much and holds as much. The bits of the rest are by the order of the admissions, which must be distinct.
func undominated(offers []*offer, asks []*admission) []entry {
	if len(asks) == 0 {
		return nil
	}
	offers = unequalled(offers, asks)
	words := (len(asks) + 63) / 64
	bits := make([]uint64, words*len(offers))
	for i, ask := range asks { // what an admission knows of offers lies side by side
		for j, o := range offers {
			if ask.check(o) >= 0 {
				bits[j*words+i/64] |= 1 << (i % 64)
			}
		}
	}
	all := make([]entry, 0, len(offers))
	for j, o := range offers {
		if e := (entry{o, bits[j*words : (j+1)*words]}); slices.ContainsFunc(e.bits, func(x uint64) bool { return x != 0 }) {
			all = append(all, e)
		}
	}
	kept := all[:0]
	for _, e := range all {
		beaten := false
		for i := len(kept) - 1; i >= 0 && !beaten; i-- { // of those of about its price some is likely to
			beaten = atLeast(kept[i].offer.room, e.offer.room) && covers(kept[i].bits, e.bits)
		}
		if !beaten {
			kept = append(kept, e)
		}
	}
	return kept
}

// alike is what admissions can tell apart of an offer.
type alike struct {
	pool           int
	answers        string // of the model, to every requirement that any admission has
	zone, capacity string
}

// unequalled leaves out, of offers in the order of forSale, those that no admission can tell from one that costs no more and holds as
// much. That is quickly done, and leaves fewer to ask the admissions about.
func unequalled(offers []*offer, asks []*admission) []*offer {
	list, texts := requirementsOf(asks)
	if len(offers) > 0 && offers[0].model.pool.culled(offers, texts) {
		offers = offers[0].model.pool.some.offers
	}
	var text []byte
	answers := map[*model]string{}
	kept := map[alike][]*offer{}
	var out []*offer
	for _, o := range offers {
		known, ok := answers[o.model]
		if !ok {
			text = text[:0]
			for _, r := range list {
				text = strconv.AppendBool(text, o.model.may(r))
			}
			known = string(text)
			answers[o.model] = known
		}
		id := alike{o.model.pool.id, known, o.Zone, o.CapacityType}
		if !slices.ContainsFunc(kept[id], func(x *offer) bool { return atLeast(x.room, o.room) }) {
			kept[id] = append(kept[id], o)
			out = append(out, o)
		}
	}
	return out
}

// requirementsOf lists the requirements of the admissions about what does not differ between a model's offers, each once and with its text.
func requirementsOf(asks []*admission) (list []require.Requirement, texts []string) {
	seen := map[string]bool{}
	var text []byte
	for _, ask := range asks {
		for _, alt := range ask.alternative {
			for _, r := range alt.All() {
				if text = written(text[:0], r); !perOffer(r.Key) && !seen[string(text)] {
					seen[string(text)] = true
					list, texts = append(list, r), append(texts, string(text))
				}
			}
		}
	}
	return list, texts
}

// few are the offers of a pool that unequalled leaves for every admission which has no other requirements than those.
type few struct {
	offers []*offer
	texts  map[string]bool
}

// cull finds what is left of the pool's sale for all these admissions.
func (p *pool) cull(asks []*admission) {
	_, texts := requirementsOf(asks)
	some := few{offers: unequalled(p.sale, asks), texts: map[string]bool{}}
	for _, t := range texts {
		some.texts[t] = true
	}
	p.some = some
}

// culled reports whether the offers are the pool's sale and were culled for all those requirements.
func (p *pool) culled(offers []*offer, texts []string) bool {
	return len(p.some.offers) > 0 && len(offers) == len(p.sale) && offers[0] == p.sale[0] && offers[len(offers)-1] == p.sale[len(p.sale)-1] &&
		!slices.ContainsFunc(texts, func(t string) bool { return !p.some.texts[t] })
}

// written appends the requirement in full.
func written(text []byte, r require.Requirement) []byte {
	text = append(append(text, r.Key...), 0)
	text = strconv.AppendBool(strconv.AppendBool(text, r.Not), r.Present)
	for _, v := range r.Values {
		text = append(append(text, v...), 1)
	}
	for _, n := range []*int64{r.Min, r.Max} {
		if text = append(text, 2); n != nil {
			text = strconv.AppendInt(text, *n, 10)
		}
	}
	return text
}

// undominatedOf is undominated of everything that is available. Each pool is gone through by itself first.
func (w *world) undominatedOf(asks []*admission) []entry {
	asks = distinct(asks)
	if len(w.pools) == 1 {
		return undominated(w.pools[0].sale, asks)
	}
	var some []*offer
	for _, p := range w.pools {
		for _, e := range undominated(p.sale, p.concerned(asks)) {
			some = append(some, e.offer)
		}
	}
	return undominated(forSale(some), asks)
}

// concerned are the admissions that may hold on nodes of the pool.
func (p *pool) concerned(asks []*admission) []*admission {
	return slices.DeleteFunc(slices.Clone(asks), func(a *admission) bool { return a.never(p) })
}

// distinct keeps the first of equal admissions.
func distinct(asks []*admission) []*admission {
	seen := make(map[*admission]bool, len(asks))
	var out []*admission
	for _, ask := range asks {
		if !seen[ask] {
			seen[ask] = true
			out = append(out, ask)
		}
	}
	return out
}

// covers reports whether a has every bit of b.
func covers(a, b []uint64) bool {
	for i := range b {
		if b[i]&^a[i] != 0 {
			return false
		}
	}
	return true
}

func atLeast(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
