package binpack

import "slices"

// wantFollowed notes for pods that have to be near others and stayed without a place, because no other was where they
// can be, the cheapest domain in which both can be: another attempt puts one of the others there. False when there is
// nothing new to note.
func (ls *lessons) wantFollowed(pk *packing) bool {
	learned := false
	for _, k := range pk.a.w.classes.list {
		if len(pk.a.rest[k.id]) == 0 || k.stays {
			continue
		}
		for _, r := range k.lastRelaxation().other {
			if r.what != follow || !r.required {
				continue
			}
			if p, ok := ls.meetingPlace(pk, k, r); ok {
				ls.wanted[p] = true
				learned = true
			}
		}
	}
	return learned
}

// meetingPlace is the cheapest domain that has no pod which the rule of the kind wants near, and could have one, with
// the kind of that pod; false when there is none but those that are wanted already.
func (ls *lessons) meetingPlace(pk *packing, k *podClass, r topologyRule) (best classDomain, ok bool) {
	least := noPrice
	for d, name := range pk.a.w.topology.domains[r.key] {
		at := []domainPin{{r.key, name}}
		if pk.a.tally.count[r.counter][d] > 0 {
			continue
		}
		price := pk.minPriceToReach(k.lastRelaxation(), at)
		if price >= least {
			continue
		}
		i := slices.IndexFunc(pk.a.w.classes.list, func(o *podClass) bool {
			return o != k && slices.Contains(o.matched, r.counter) && o.lastRelaxation().placementRank() <= rankFree &&
				slices.Contains(pk.a.w.topology.keysOf(o.lastRelaxation()), r.key) &&
				pk.minPriceToReach(o.lastRelaxation(), at) < noPrice
		})
		if i < 0 {
			continue
		}
		if p := (classDomain{i, r.key, name}); !ls.wanted[p] {
			best, least, ok = p, price, true
		}
	}
	return best, ok
}
