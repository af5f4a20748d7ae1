// Package fairshare divides what there is among those who want some of it, by max-min fairness.
package fairshare

import (
	"cmp"
	"slices"
)

// MaxMin gives each what it wants, of a total; those that want more than can be given get the same. The result has the
// order of wants.
func MaxMin[N ~int64](total N, wants []N) []N {
	order := make([]int, len(wants))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(wants[a], wants[b]) })
	out := make([]N, len(wants))
	for k, i := range order {
		out[i] = min(wants[i], total/N(len(order)-k))
		total -= out[i]
	}
	return out
}
