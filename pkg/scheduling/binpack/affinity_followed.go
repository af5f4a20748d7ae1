package binpack

import "slices"

// wantFollowed notes for pods that have to be near others and stayed without a place, because no other was where they
// can be, the cheapest domain in which both can be: another attempt puts one of the others there. False when there is
// nothing new to note.
func (a *solution) wantFollowed(wanted map[classDomain]bool) bool {
	learned := false
	for _, k := range a.w.kinds {
		if len(a.rest[k.id]) == 0 || k.stays {
			continue
		}
		for _, r := range k.lastRelaxation().other {
			if r.what != follow || !r.required {
				continue
			}
			if p, ok := a.meetingPlace(k, r, wanted); ok {
				wanted[p] = true
				learned = true
			}
		}
	}
	return learned
}

// meetingPlace is the cheapest domain that has no pod which the rule of the kind wants near, and could have one, with
// the kind of that pod; false when there is none but those that are wanted already or could not take such a pod.
func (a *solution) meetingPlace(k *podClass, r topologyRule, wanted map[classDomain]bool) (best classDomain, ok bool) {
	least := noPrice
	for d, name := range a.w.domains[r.key] {
		at := []domainPin{{r.key, name}}
		if a.tally.count[r.counter][d] > 0 {
			continue
		}
		price := a.minPriceToReach(k.lastRelaxation(), at)
		if price >= least {
			continue
		}
		i := slices.IndexFunc(a.w.kinds, func(o *podClass) bool {
			return o != k && slices.Contains(o.matched, r.counter) && o.lastRelaxation().placementRank() <= rankFree &&
				slices.Contains(a.w.keysOf(o.lastRelaxation()), r.key) &&
				a.minPriceToReach(o.lastRelaxation(), at) < noPrice
		})
		if i < 0 {
			continue
		}
		if p := (classDomain{i, r.key, name}); !wanted[p] && a.stuck[p] == 0 {
			best, least, ok = p, price, true
		}
	}
	return best, ok
}
