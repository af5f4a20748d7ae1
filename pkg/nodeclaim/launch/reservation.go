package launch

import (
	"cmp"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/instancetypes"
)

// What a template says about capacity reservations, and the markets of CreateFleet that such capacity is sold on.
const (
	reservationNone = "none" // open reservations are not ours to use up
	reservationOnly = "capacity-reservations-only"

	MarketBlock         = "capacity-block"
	MarketInterruptible = "interruptible-capacity-reservation"
)

// intoReservations leaves of candidates with reserved offerings those that one request can be served from, and nothing
// else; without such offerings it changes nothing. Reservations of one kind are asked for at once: those with the
// cheapest offering (filters 2 to 4).
func intoReservations(cs []candidate) []candidate {
	best, found := instancetypes.Offering{}, false
	for _, c := range cs {
		for _, o := range c.offerings {
			if o.Reservation != nil && (!found || compareReserved(o, best) < 0) {
				best, found = o, true
			}
		}
	}
	if !found {
		return cs
	}
	if best.Reservation.Kind == instancetypes.CapacityBlock { // of a block exactly one is asked for
		i := slices.IndexFunc(cs, func(c candidate) bool { return c.t.Name == best.Type })
		return []candidate{{t: cs[i].t, offerings: []instancetypes.Offering{best}}}
	}
	var out []candidate
	for _, c := range cs {
		c.offerings = filterRoomiest(c.offerings, *best.Reservation)
		if len(c.offerings) > 0 {
			out = append(out, c)
		}
	}
	return out
}

// compareReserved orders by price and then by how safe the capacity is.
func compareReserved(a, b instancetypes.Offering) int {
	return cmp.Or(cmp.Compare(a.Price, b.Price), cmp.Compare(reservationRisk(*a.Reservation),
		reservationRisk(*b.Reservation)), cmp.Compare(a.Type, b.Type),
		cmp.Compare(a.Zone, b.Zone), cmp.Compare(a.Reservation.ID, b.Reservation.ID))
}

// reservationRisk is 0 for a plain reservation; that of a block ends, and an interruptible one may be taken back any
// time.
func reservationRisk(r instancetypes.Reservation) int {
	switch {
	case r.Interruptible:
		return 2
	case r.Kind == instancetypes.CapacityBlock:
		return 1
	}
	return 0
}

// filterRoomiest keeps of the offerings of one type, in reservations like the one given, that with most room in each
// zone.
func filterRoomiest(offerings []instancetypes.Offering, like instancetypes.Reservation) []instancetypes.Offering {
	var out []instancetypes.Offering
	for _, o := range offerings {
		r := o.Reservation
		if r == nil || r.Kind != like.Kind || r.Interruptible != like.Interruptible {
			continue
		}
		i := slices.IndexFunc(out, func(have instancetypes.Offering) bool { return have.Zone == o.Zone })
		switch {
		case i < 0:
			out = append(out, o)
		case cmp.Or(cmp.Compare(out[i].Reservation.Remaining, r.Remaining),
			cmp.Compare(r.ID, out[i].Reservation.ID)) < 0:
			out[i] = o
		}
	}
	return out
}

// marketOf is the market of the candidates' reservations, which are all of one kind.
func marketOf(cs []candidate) string {
	if r := cs[0].offerings[0].Reservation; r != nil {
		return reservationSelection(*r, false).Market
	}
	return ""
}

// reservationSelection says which capacity reservations an instance uses up: the one that it was chosen for, none, or
// with open those that EC2 matches.
func reservationSelection(r instancetypes.Reservation, open bool) ReservationSelection {
	switch {
	case r.ID == "" && open:
		return ReservationSelection{} // what EC2 does when nothing is said
	case r.ID == "":
		return ReservationSelection{Preference: reservationNone}
	case r.Interruptible:
		return ReservationSelection{Preference: reservationOnly, ID: r.ID, Market: MarketInterruptible}
	case r.Kind == instancetypes.CapacityBlock:
		return ReservationSelection{Preference: reservationOnly, ID: r.ID, Market: MarketBlock}
	}
	return ReservationSelection{Preference: reservationOnly, ID: r.ID}
}

// reservationLabels returns the labels of nodes in the reservation.
func reservationLabels(r instancetypes.Reservation) map[string]string {
	if r.ID == "" {
		return nil
	}
	return map[string]string{instancetypes.LabelReservationID: r.ID, instancetypes.LabelReservation: r.Kind,
		instancetypes.LabelInterruptible: strconv.FormatBool(r.Interruptible)}
}
