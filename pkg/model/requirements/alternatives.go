package requirements

import "slices"

// CombineAlternatives returns the cross product of two lists of alternatives, of which an empty one allows everything,
// without those that contradict themselves. If all do, they all stay, so that the pod fails where its placement is
// tried and the reason shows. Of those that mean the same one stays: volumes of one storage class with terms that
// overlap would double them with each volume.
func CombineAlternatives(a, b [][]Requirement) [][]Requirement {
	if len(a) == 0 {
		return b
	}
	if len(b) == 0 {
		return a
	}
	var all, possible [][]Requirement
	seen := map[string]bool{}
	for _, x := range a {
		for _, y := range b {
			both := slices.Concat(x, y)
			means := NewSet(both...).FullText()
			if seen[means] {
				continue
			}
			seen[means] = true
			all = append(all, both)
			if NewSet(x...).Intersects(NewSet(y...)) {
				possible = append(possible, both)
			}
		}
	}
	if len(possible) == 0 {
		return all
	}
	return possible
}
