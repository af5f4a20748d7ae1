package launch

import (
	"cmp"
	"slices"
	"strconv"

	"joiner/pkg/catalog"
)

// What a template says about capacity reservations, and the markets of CreateFleet that such capacity is sold on (spec aws.md §3.4).
const (
	reservationNone = "none" // open reservations are not ours to use up
	reservationOnly = "capacity-reservations-only"

	MarketBlock         = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"
)

// intoReservations leaves of candidates with reserved offers those that one request can be served from, and nothing else; without such
// offers it changes nothing. Reservations of one kind are asked for at once: those with the cheapest offer (spec aws.md §2.8, filters 2
// to 4).
func intoReservations(cs []candidate) []candidate {
	best, found := catalog.Offering{}, false
	for _, c := range cs {
		for _, o := range c.offers {
			if o.Reservation != nil && (!found || compareReserved(o, best) < 0) {
				best, found = o, true
			}
		}
	}
	if !found {
		return cs
	}
	if best.Reservation.Kind == catalog.CapacityBlock { // of a block exactly one is asked for
		i := slices.IndexFunc(cs, func(c candidate) bool { return c.t.Name == best.Type })
		return []candidate{{t: cs[i].t, offers: []catalog.Offering{best}}}
	}
	var out []candidate
	for _, c := range cs {
		c.offers = roomiest(c.offers, *best.Reservation)
		if len(c.offers) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// compareReserved orders by price and then by how safe the capacity is.
func compareReserved(a, b catalog.Offering) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(risk(*a.Reservation), risk(*b.Reservation)), cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Reservation.ID, b.Reservation.ID))
}

// risk is 0 for a plain reservation; that of a block ends, and an interruptible one may be taken back any time.
func risk(r catalog.Reservation) int {
	switch {
	case r.Interruptible:
		return 2
	case r.Kind == catalog.CapacityBlock:
		return 1
	}
	return 0
}

// roomiest keeps of the offers of one type, in reservations like the one given, that with most room in each zone.
func roomiest(offers []catalog.Offering, like catalog.Reservation) []catalog.Offering {
	var out []catalog.Offering
	for _, o := range offers {
		r := o.Reservation
		if r == nil || r.Kind != like.Kind || r.Interruptible != like.Interruptible {
			continue
		}
		i := slices.IndexFunc(out, func(have catalog.Offering) bool { return have.Zone == o.Zone })
		switch {
		case i < 0:
			out = append(out, o)
		case cmp.Or(cmp.Compare(out[i].Reservation.Remaining, r.Remaining), cmp.Compare(r.ID, out[i].Reservation.ID)) < 0:
			out[i] = o
		}
	}
	return out
}

// marketOf is the market of the candidates' reservations, which are all of one kind.
func marketOf(cs []candidate) string {
	if r := cs[0].offers[0].Reservation; r != nil {
		return selection(*r).Market
	}
	return ""
}

func selection(r catalog.Reservation) ReservationSelection {
	switch {
	case r.ID == "":
		return ReservationSelection{Preference: reservationNone}
	case r.Interruptible:
		return ReservationSelection{Preference: reservationOnly, ID: r.ID, Market: MarketInterruptible}
	case r.Kind == catalog.CapacityBlock:
		return ReservationSelection{Preference: reservationOnly, ID: r.ID, Market: MarketBlock}
	}
	return ReservationSelection{Preference: reservationOnly, ID: r.ID}
}

// reservationLabels are those of nodes in the reservation.
func reservationLabels(r catalog.Reservation) map[string]string {
	if r.ID == "" {
		return nil
	}
	return map[string]string{catalog.LabelReservationID: r.ID, catalog.LabelReservation: r.Kind,
		catalog.LabelInterruptible: strconv.FormatBool(r.Interruptible)}
}
