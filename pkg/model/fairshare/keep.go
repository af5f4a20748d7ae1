package fairshare

import (
	"cmp"
	"maps"
	"slices"
)

// Named is one of the things of a namespace.
type Named struct {
	Namespace, Name string
	Weight          int64 // as how many it counts, 0 for one
}

// Kept holds the number of things that a namespace has, and how many of them are kept.
type Kept struct{ Of, Most int64 }

// KeepFirst decides which of the things are kept where there may be so many in all: namespaces get the same, as far as
// they need it, and within one the first by name are kept, up to the first without room. The first result has the
// order of things.
func KeepFirst(total int64, things []Named) (keep []bool, by map[string]Kept) {
	places := map[string][]int{}
	for i, x := range things {
		places[x.Namespace] = append(places[x.Namespace], i)
	}
	namespaces := slices.Sorted(maps.Keys(places))
	wants := make([]int64, len(namespaces))
	for i, ns := range namespaces {
		for _, j := range places[ns] {
			wants[i] += max(1, things[j].Weight)
		}
	}
	keep, by = make([]bool, len(things)), map[string]Kept{}
	for i, most := range MaxMin(total, wants) {
		list := places[namespaces[i]]
		slices.SortFunc(list, func(x, y int) int { return cmp.Compare(things[x].Name, things[y].Name) })
		kept := Kept{Of: int64(len(list))}
		for _, j := range list {
			if most -= max(1, things[j].Weight); most < 0 {
				break
			}
			keep[j] = true
			kept.Most++
		}
		by[namespaces[i]] = kept
	}
	return keep, by
}

// Turns are the places of things by turns of their namespaces: the first of each, then the second of each.
func Turns(namespaces []string) []int {
	places, turn, had := make([]int, len(namespaces)), make([]int, len(namespaces)), map[string]int{}
	for i, ns := range namespaces {
		places[i], turn[i] = i, had[ns]
		had[ns]++
	}
	slices.SortStableFunc(places, func(a, b int) int { return cmp.Compare(turn[a], turn[b]) })
	return places
}
