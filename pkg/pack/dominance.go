package pack

import (
	"cmp"
	"slices"
)

// entry is an offer with the admissions that let pods be on it, as bits.
type entry struct {
	offer *offer
	bits  []uint64
}

// undominated leaves out the offers that are not available, admit nothing, or are beaten by one that costs no more, admits as
// much and holds as much. The bits of the rest are by the order in which the admissions first come.
func undominated(offers []*offer, asks []*admission) []entry {
	asks = distinct(asks)
	words := (len(asks) + 63) / 64
	var all []entry
	for _, o := range offers {
		if !o.Available {
			continue
		}
		e := entry{o, make([]uint64, words)}
		some := false
		for i, ask := range asks {
			if ask.check(o) >= 0 {
				e.bits[i/64] |= 1 << (i % 64)
				some = true
			}
		}
		if some {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(x, y entry) int {
		return cmp.Or(cmp.Compare(x.offer.Price, y.offer.Price), slices.Compare(y.offer.room, x.offer.room), cmp.Compare(x.offer.id, y.offer.id))
	})
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
