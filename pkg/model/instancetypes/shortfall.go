package instancetypes

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/resources"
)

// Observation lists what one node of a class has less of for pods than it was launched for.
type Observation struct {
	Type     string               `json:"type"`
	Instance string               `json:"instance"` // id
	Has      []resources.Extended `json:"has"`      // of what is short, sorted by name
}

// witnesses is the number of nodes that must say the same before others are expected to be like them: one may be
// broken, or lie.
const witnesses = 2

// What nodes can plausibly have less of than was estimated. What lies below is no estimate gone wrong.
const (
	leastPart      = 2        // of CPU and memory: one half, with threads off or much reserved
	leastPodsPart  = 10       // of pods: a tenth, as with addresses kept for others
	leastEphemeral = 10 << 30 // bytes: no image runs pods on a smaller disk
)

// IsPlausible reports whether a node may have so much of the resource for pods where so much was estimated. Of what is
// not plausible nothing is learned, and the brake on purchases is all that helps.
func IsPlausible(name string, has, estimate int64) bool {
	switch name {
	case resources.CPU, resources.Memory:
		return has*leastPart >= estimate
	case resources.Pods:
		return has*leastPodsPart >= estimate
	case resources.Ephemeral:
		return has >= leastEphemeral || has*leastPart >= estimate
	}
	return has > 0
}

// LowerToObserved returns the types with what their nodes turned out to have for pods where that is less than
// estimated: of each resource what at least two nodes of the type do not exceed. The types given are not changed, and
// returned as they are where nothing is lower.
func LowerToObserved(types []Type, seen []Observation) []Type {
	byType := map[string][]Observation{}
	for _, o := range seen {
		same := func(k Observation) bool { return k.Instance == o.Instance }
		if !slices.ContainsFunc(byType[o.Type], same) {
			byType[o.Type] = append(byType[o.Type], o)
		}
	}
	out := types
	for i := range types {
		lower := types[i].Allocatable
		for name, has := range confirmedAmounts(byType[types[i].Name]) {
			if estimate := lower.Get(name); has < estimate && IsPlausible(name, has, estimate) {
				lower = lower.With(name, has)
			}
		}
		if lower.Sub(types[i].Allocatable).IsZero() {
			continue
		}
		if &out[0] == &types[0] {
			out = slices.Clone(types)
		}
		out[i].Allocatable = lower
	}
	return out
}

// confirmedAmounts are the amounts, by resource, that enough of the nodes do not exceed.
func confirmedAmounts(seen []Observation) map[string]int64 {
	if len(seen) < witnesses {
		return nil
	}
	amounts := map[string][]int64{}
	for _, o := range seen {
		for _, has := range o.Has {
			amounts[has.Name] = append(amounts[has.Name], has.Count)
		}
	}
	out := map[string]int64{}
	for name, list := range amounts { // each on its own
		if len(list) >= witnesses {
			slices.SortFunc(list, cmp.Compare)
			out[name] = list[witnesses-1]
		}
	}
	return out
}
