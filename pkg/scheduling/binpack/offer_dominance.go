package binpack

import (
	"cmp"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// admittedOffer is an offer with the admissions that let pods be on it, as bits.
type admittedOffer struct {
	offer *poolOffering
	bits  []uint64
}

// forSale reports whether the offer is available in any number.
func (o *poolOffering) forSale() bool { return o.Available && !o.Limited() }

// forSale are the offers that are available in any number, the cheapest first, among equals those with more room.
func forSale(offers []*poolOffering) []*poolOffering {
	return byPrice(slices.DeleteFunc(slices.Clone(offers), func(o *poolOffering) bool { return !o.forSale() }))
}

// byPrice are the offers, the cheapest first, among equals those with more room.
func byPrice(offers []*poolOffering) []*poolOffering {
	type tag struct { // what decides nearly always, beside the pointer: looking behind each takes its time
		price float64
		offer *poolOffering
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
		return cmp.Or(slices.Compare(b.room, a.room), cmp.Compare(a.model.pool.id, b.model.pool.id),
			cmp.Compare(a.index, b.index))
	})
	out := make([]*poolOffering, len(tags))
	for i, t := range tags {
		out[i] = t.offer
	}
	return out
}

// filterUndominated leaves out, of offers in the order of forSale, those that admit nothing or are beaten by one that
// costs no more, admits as much and holds as much. The bits of the rest are by the order of the admissions, which must
// be distinct.
func filterUndominated(offers []*poolOffering, asks []*podclass.Admission) []admittedOffer {
	if len(asks) == 0 {
		return nil
	}
	return filterUnbeaten(filterAdmitting(filterDistinct(offers, asks), asks), nil)
}

// filterAdmitting are the offers that admit something.
func filterAdmitting(offers []*poolOffering, asks []*podclass.Admission) []admittedOffer {
	words := (len(asks) + 63) / 64
	bits := make([]uint64, words*len(offers))
	for i, ask := range asks { // what an admission knows of offers lies side by side
		for j, o := range offers {
			if o.firstAlternative(ask) >= 0 {
				bits[j*words+i/64] |= 1 << (i % 64)
			}
		}
	}
	all := make([]admittedOffer, 0, len(offers))
	for j, o := range offers {
		if e := (admittedOffer{o, bits[j*words : (j+1)*words]}); slices.ContainsFunc(e.bits,
			func(x uint64) bool { return x != 0 }) {
			all = append(all, e)
		}
	}
	return all
}

// filterUnbeaten leaves out those that are beaten by another of those that may beat each other, which are all where
// that is nil.
func filterUnbeaten(all []admittedOffer, rivals func(a, b *poolOffering) bool) []admittedOffer {
	kept := all[:0]
	var groups []*alikeOffers
	for _, e := range all {
		var own *alikeOffers
		beaten := false
		for _, g := range groups {
			if slices.Equal(g.bits, e.bits) {
				own = g
			}
			if beaten = coversBits(g.bits, e.bits) && g.beats(e.offer, rivals); beaten {
				break
			}
		}
		if beaten {
			continue
		}
		if own == nil {
			own = &alikeOffers{bits: e.bits}
			groups = append(groups, own)
		}
		own.add(e.offer)
		kept = append(kept, e)
	}
	return kept
}

// alikeOffers are offers that the same admissions let pods be on, with their rooms side by side.
type alikeOffers struct {
	bits   []uint64
	offers []*poolOffering
	rooms  []int64
}

func (g *alikeOffers) add(o *poolOffering) {
	g.offers, g.rooms = append(g.offers, o), append(g.rooms, o.room...)
}

// beats reports whether one of them has all the room that the offer has and may beat it.
func (g *alikeOffers) beats(o *poolOffering, rivals func(a, b *poolOffering) bool) bool {
	dims := len(o.room)
	for i := len(g.offers) - 1; i >= 0; i-- { // one of about its price is likely to
		if atLeast(g.rooms[i*dims:(i+1)*dims], o.room) && (rivals == nil || rivals(g.offers[i], o)) {
			return true
		}
	}
	return false
}

// offerKey is what admissions can tell apart of an offer.
type offerKey struct {
	pool           int
	answers        string // of the model, to every requirement that any admission has
	excluded       string // by admission that has exclusions
	zone, capacity string
}

// filterDistinct leaves out, of offers in the order of forSale, those that no admission can tell from one that costs no
// more and holds as much. That is quickly done, and leaves fewer to ask the admissions about.
func filterDistinct(offers []*poolOffering, asks []*podclass.Admission) []*poolOffering {
	list := requirementsOf(asks)
	var text []byte
	excluding := slices.DeleteFunc(slices.Clone(asks),
		func(a *podclass.Admission) bool { return len(a.Exclusions) == 0 })
	answers := map[*poolInstanceType]string{}
	kept := map[offerKey]*alikeOffers{}
	var out []*poolOffering
	for _, o := range offers {
		known, ok := answers[o.model]
		if !ok {
			text = text[:0]
			for _, r := range list {
				text = strconv.AppendBool(text, o.model.mayMeet(r))
			}
			known = string(text)
			answers[o.model] = known
		}
		id := offerKey{o.model.pool.id, known, excludedBy(o, excluding), o.Zone, o.CapacityType}
		alike := kept[id]
		if alike == nil {
			alike = &alikeOffers{}
			kept[id] = alike
		}
		if !alike.beats(o, nil) {
			alike.add(o)
			out = append(out, o)
		}
	}
	return out
}

// excludedBy tells which of the admissions keep pods off the offer because of DaemonSets.
func excludedBy(o *poolOffering, asks []*podclass.Admission) string {
	if len(asks) == 0 {
		return ""
	}
	var text []byte
	for _, a := range asks {
		text = strconv.AppendBool(text, o.keepsOff(a))
	}
	return string(text)
}

// requirementsOf lists the requirements of the admissions about what does not differ between a model's offers, each
// once.
func requirementsOf(asks []*podclass.Admission) (list []requirements.Requirement) {
	seen := map[string]bool{}
	var text []byte
	for _, ask := range asks {
		for _, alt := range ask.Alternatives {
			for _, r := range alt.All() {
				if text = appendRequirement(text[:0], r); !podclass.VariesByOffering(r.Key) && !seen[string(text)] {
					seen[string(text)] = true
					list = append(list, r)
				}
			}
		}
	}
	return list
}

// undominatedOffers are the offers of a pool's sale of which some may be undominated for some of the admissions, and
// for those of these that are tied to a zone or a capacity type. Without admissions they are not found yet.
type undominatedOffers struct {
	offers []*poolOffering
	asks   map[*podclass.Admission]bool
	known  map[string][]*poolOffering // what is undominated for admissions, by their numbers
}

// cullOffers finds what is left of the pool's sale for all these admissions, which must be distinct.
func (p *pool) cullOffers(asks []*podclass.Admission) {
	p.some = undominatedOffers{asks: make(map[*podclass.Admission]bool, len(asks)), known: map[string][]*poolOffering{}}
	for _, ask := range asks {
		p.some.asks[ask] = true
	}
	for _, e := range filterUnbeaten(filterAdmitting(filterDistinct(p.sale, asks), asks),
		(*poolOffering).sharesDomains) {
		p.some.offers = append(p.some.offers, e.offer)
	}
}

// sharesDomains reports whether being tied to a zone or a capacity type leaves both offers or neither.
func (o *poolOffering) sharesDomains(x *poolOffering) bool {
	return o.Zone == x.Zone && o.CapacityType == x.CapacityType
}

// coversAdmission reports whether what is left will do for the admission.
func (f undominatedOffers) coversAdmission(ask *podclass.Admission) bool {
	for !f.asks[ask] {
		if ask.Wider == nil || ask.Pin.Key != instancetypes.LabelZone && ask.Pin.Key != instancetypes.LabelZoneID &&
			ask.Pin.Key != instancetypes.LabelCapacityType {
			return false
		}
		ask = ask.Wider
	}
	return true
}

// undominatedFor are the offers of the pool's sale that filterUndominated leaves for the admissions, which must be
// distinct.
func (p *pool) undominatedFor(asks []*podclass.Admission) []*poolOffering {
	asks = p.concernedAdmissions(asks)
	culled := p.some.asks != nil
	if culled && slices.ContainsFunc(asks, func(a *podclass.Admission) bool { return !p.some.coversAdmission(a) }) {
		return offersOf(filterUndominated(p.sale, asks)) // another question may know another admission by its number
	}
	var numbers []int
	for _, a := range asks {
		numbers = append(numbers, a.Number)
	}
	slices.Sort(numbers)
	var id []byte
	for _, n := range numbers {
		id = append(strconv.AppendInt(id, int64(n), 36), ' ')
	}
	out, ok := p.some.known[string(id)]
	switch {
	case ok:
		return out
	case culled:
		out = offersOf(filterUnbeaten(filterAdmitting(p.some.offers, asks), nil))
	default:
		out = offersOf(filterUndominated(p.sale, asks))
	}
	if p.some.known == nil {
		p.some.known = map[string][]*poolOffering{}
	}
	p.some.known[string(id)] = out
	return out
}

// offersOf are the offers without what admits them.
func offersOf(list []admittedOffer) []*poolOffering {
	out := make([]*poolOffering, len(list))
	for i, e := range list {
		out[i] = e.offer
	}
	return out
}

// appendRequirement appends the requirement in full.
func appendRequirement(text []byte, r requirements.Requirement) []byte {
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

// undominatedOf are the undominated of everything that is available. Each pool is gone through by itself first.
func (cat *catalog) undominatedOf(asks []*podclass.Admission) []*poolOffering {
	asks = podclass.DistinctAdmissions(asks)
	if len(cat.pools) == 1 {
		return cat.pools[0].undominatedFor(asks)
	}
	var some []*poolOffering
	for _, p := range cat.pools {
		some = append(some, p.undominatedFor(asks)...)
	}
	return offersOf(filterUndominated(forSale(some), asks))
}

// concernedAdmissions are the admissions that may hold on nodes of the pool.
func (p *pool) concernedAdmissions(asks []*podclass.Admission) []*podclass.Admission {
	return slices.DeleteFunc(slices.Clone(asks), func(a *podclass.Admission) bool { return p.refuses(a) })
}

// coversBits reports whether a has every bit of b.
func coversBits(a, b []uint64) bool {
	for i := range b {
		if b[i]&^a[i] != 0 {
			return false
		}
	}
	return true
}

// atLeast reports whether a has all that b has.
func atLeast(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
