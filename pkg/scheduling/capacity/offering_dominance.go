package capacity

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/podclass"
)

// admittedOffering is an offering with the admissions that let pods be on it, as bits.
type admittedOffering struct {
	offering *Offering
	bits     []uint
}

// forSale reports whether the offering is available in any number.
func (o *Offering) forSale() bool { return o.Available && !o.Limited() }

// forSale are the offerings that are available in any number, the cheapest first, among equals those with more room.
func forSale(offerings []*Offering) []*Offering {
	return byPrice(slices.DeleteFunc(slices.Clone(offerings), func(o *Offering) bool { return !o.forSale() }))
}

// filterUndominated leaves out, of offerings in the order of ForSale, those that admit nothing or are beaten by one
// that costs no more, admits as much and holds as much. The bits of the rest are by the order of the admissions, which
// must be distinct.
func filterUndominated(offerings []*Offering, asks []*podclass.Admission) []admittedOffering {
	if len(asks) == 0 {
		return nil
	}
	return filterUnbeaten(filterAdmitting(filterDistinct(offerings, asks), asks), nil)
}

// filterAdmitting are the offerings that admit something.
func filterAdmitting(offerings []*Offering, asks []*podclass.Admission) []admittedOffering {
	words := (len(asks) + bits.UintSize - 1) / bits.UintSize
	set := make([]uint, words*len(offerings))
	for i, ask := range asks { // what an admission knows of offerings lies side by side
		for j, o := range offerings {
			if o.FirstAlternative(ask) >= 0 {
				set[j*words+i/bits.UintSize] |= 1 << (i % bits.UintSize)
			}
		}
	}
	all := make([]admittedOffering, 0, len(offerings))
	for j, o := range offerings {
		if e := (admittedOffering{o, set[j*words : (j+1)*words]}); slices.ContainsFunc(e.bits,
			func(x uint) bool { return x != 0 }) {
			all = append(all, e)
		}
	}
	return all
}

// filterUnbeaten leaves out those that are beaten by another of those that may beat each other, which are all where
// that is nil.
func filterUnbeaten(all []admittedOffering, rivals func(a, b *Offering) bool) []admittedOffering {
	kept := all[:0]
	var groups []*alikeOfferings
	for _, e := range all {
		var own *alikeOfferings
		beaten := false
		for _, g := range groups {
			if slices.Equal(g.bits, e.bits) {
				own = g
			}
			if beaten = coversBits(g.bits, e.bits) && g.beats(e.offering, rivals); beaten {
				break
			}
		}
		if beaten {
			continue
		}
		if own == nil {
			own = &alikeOfferings{bits: e.bits}
			groups = append(groups, own)
		}
		own.add(e.offering)
		kept = append(kept, e)
	}
	return kept
}

// alikeOfferings are offerings that the same admissions let pods be on, with their rooms side by side.
type alikeOfferings struct {
	bits      []uint
	offerings []*Offering
	rooms     []int64
}

func (g *alikeOfferings) add(o *Offering) {
	g.offerings, g.rooms = append(g.offerings, o), append(g.rooms, o.Room...)
}

// beats reports whether one of them has all the room that the offering has and may beat it.
func (g *alikeOfferings) beats(o *Offering, rivals func(a, b *Offering) bool) bool {
	dims := len(o.Room)
	for i := len(g.offerings) - 1; i >= 0; i-- { // one of about its price is likely to
		if AtLeast(g.rooms[i*dims:(i+1)*dims], o.Room) && (rivals == nil || rivals(g.offerings[i], o)) {
			return true
		}
	}
	return false
}

// offeringKey holds all that admissions can tell apart of an offering.
type offeringKey struct {
	pool           int
	answers        string // of the model, to every requirement that any admission has
	excluded       string // by admission that has exclusions
	zone, capacity string
}

// filterDistinct leaves out, of offerings in the order of ForSale, those that no admission can tell from one that costs
// no more and holds as much. That is quickly done, and leaves fewer to ask the admissions about.
func filterDistinct(offerings []*Offering, asks []*podclass.Admission) []*Offering {
	list := requirementsOf(asks)
	var text []byte
	excluding := slices.DeleteFunc(slices.Clone(asks),
		func(a *podclass.Admission) bool { return len(a.Exclusions) == 0 })
	answers := map[*InstanceType]string{}
	kept := map[offeringKey]*alikeOfferings{}
	var out []*Offering
	for _, o := range offerings {
		known, ok := answers[o.InstanceType]
		if !ok {
			text = text[:0]
			for _, r := range list {
				text = strconv.AppendBool(text, o.InstanceType.mayMeet(r))
			}
			known = string(text)
			answers[o.InstanceType] = known
		}
		id := offeringKey{o.InstanceType.Pool.ID, known, excludedBy(o, excluding), o.Zone, o.CapacityType}
		alike := kept[id]
		if alike == nil {
			alike = &alikeOfferings{}
			kept[id] = alike
		}
		if !alike.beats(o, nil) {
			alike.add(o)
			out = append(out, o)
		}
	}
	return out
}

// excludedBy tells which of the admissions keep pods off the offering because of DaemonSets.
func excludedBy(o *Offering, asks []*podclass.Admission) string {
	if len(asks) == 0 {
		return ""
	}
	var text []byte
	for _, a := range asks {
		text = strconv.AppendBool(text, o.KeepsOff(a))
	}
	return string(text)
}

// requirementsOf lists the requirements of the admissions about what does not differ between a model's offerings, each
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

// CullOfferings finds what is left of the pool's sale for all these admissions, which must be distinct.
func (p *OfferingPool) CullOfferings(asks []*podclass.Admission) {
	p.Some = undominatedOfferings{Asks: make(map[*podclass.Admission]bool, len(asks)), Known: map[string][]*Offering{}}
	for _, ask := range asks {
		p.Some.Asks[ask] = true
	}
	for _, e := range filterUnbeaten(filterAdmitting(filterDistinct(p.Sale, asks), asks),
		(*Offering).sharesDomains) {
		p.Some.offerings = append(p.Some.offerings, e.offering)
	}
}

// sharesDomains reports whether being tied to a zone or a capacity type leaves both offerings or neither.
func (o *Offering) sharesDomains(x *Offering) bool {
	return o.Zone == x.Zone && o.CapacityType == x.CapacityType
}

// coversAdmission reports whether what is left will do for the admission.
func (f undominatedOfferings) coversAdmission(ask *podclass.Admission) bool {
	for !f.Asks[ask] {
		if ask.Wider == nil || ask.Pin.Key != instancetypes.LabelZone && ask.Pin.Key != instancetypes.LabelZoneID &&
			ask.Pin.Key != instancetypes.LabelCapacityType {
			return false
		}
		ask = ask.Wider
	}
	return true
}

// UndominatedFor are the offerings of the pool's sale that filterUndominated leaves for the admissions, which must be
// distinct.
func (p *OfferingPool) UndominatedFor(asks []*podclass.Admission) []*Offering {
	asks = p.concernedAdmissions(asks)
	culled := p.Some.Asks != nil
	if culled && slices.ContainsFunc(asks, func(a *podclass.Admission) bool { return !p.Some.coversAdmission(a) }) {
		return offeringsOf(filterUndominated(p.Sale, asks)) // another question may know another admission by its number
	}
	var numbers []int
	for _, a := range asks {
		numbers = append(numbers, a.Number)
	}
	slices.Sort(numbers)
	var id []byte
	for _, n := range numbers {
		id = binary.AppendVarint(id, int64(n))
	}
	out, ok := p.Some.Known[string(id)]
	switch {
	case ok:
		return out
	case culled:
		out = offeringsOf(filterUnbeaten(filterAdmitting(p.Some.offerings, asks), nil))
	default:
		out = offeringsOf(filterUndominated(p.Sale, asks))
	}
	if p.Some.Known == nil {
		p.Some.Known = map[string][]*Offering{}
	}
	p.Some.Known[string(id)] = out
	return out
}

// offeringsOf are the offerings without what admits them.
func offeringsOf(list []admittedOffering) []*Offering {
	out := make([]*Offering, len(list))
	for i, e := range list {
		out[i] = e.offering
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
			text = fmt.Append(text, *n)
		}
	}
	return text
}

// UndominatedOf are the undominated of everything that is available. Each pool is gone through by itself first.
func (cat *Catalog) UndominatedOf(asks []*podclass.Admission) []*Offering {
	asks = podclass.DistinctAdmissions(asks)
	if len(cat.Pools) == 1 {
		return cat.Pools[0].UndominatedFor(asks)
	}
	var some []*Offering
	for _, p := range cat.Pools {
		some = append(some, p.UndominatedFor(asks)...)
	}
	return offeringsOf(filterUndominated(forSale(some), asks))
}

// FilterUndominated leaves out, of offerings of the pool, those that none of the admissions needs: they admit nothing,
// or another costs no more, admits as much and holds as much. The rest are the cheapest first.
func (p *OfferingPool) FilterUndominated(offerings []*Offering, asks []*podclass.Admission) []*Offering {
	return offeringsOf(filterUndominated(byPrice(offerings), p.concernedAdmissions(asks)))
}

// concernedAdmissions are the admissions that may hold on nodes of the pool.
func (p *OfferingPool) concernedAdmissions(asks []*podclass.Admission) []*podclass.Admission {
	return slices.DeleteFunc(slices.Clone(asks), func(a *podclass.Admission) bool { return p.refuses(a) })
}

// coversBits reports whether a has every bit of b.
func coversBits(a, b []uint) bool {
	for i := range b {
		if b[i]&^a[i] != 0 {
			return false
		}
	}
	return true
}

// AtLeast reports whether a has all that b has.
func AtLeast(a, b []int64) bool {
	for i := range b {
		if a[i] < b[i] {
			return false
		}
	}
	return true
}
