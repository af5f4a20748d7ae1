package packing

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/capacity"
)

// minValuesFit makes a new node of the offering as small as the pool's MinValues need it.
type minValuesFit struct {
	a        *Solution
	offering *capacity.Offering
	inUse    capacity.PoolUsage // without the node
}

// shrinkForMinValues makes the takes as small as it needs for enough types to hold them for the pool's MinValues; nil
// when none is small enough. Where MinValues may be lowered (BestEffort) they are, to what the first pod leaves
// possible, and no further for those that join it. The capacity is what the node may take of the pool's limits: that of
// the largest type it must be able to become. Where the first pod cannot be there even alone its batch is refused, and
// there are no takes: the node was chosen for all of them, and for the others another may be better.
func (s *Solution) shrinkForMinValues(o *capacity.Offering, takes []BatchTake) ([]BatchTake, resources.List,
	capacity.LoweredMinValues) {
	p := o.InstanceType.Pool
	if !p.MinValues() {
		return takes, o.InstanceType.Type.Capacity, nil
	}
	m := minValuesFit{s, o, s.Used.Pools[p.ID]}
	if o.Limited() { // of one type, and so only where that is enough, see MayBeOneType
		return takes, o.InstanceType.Type.Capacity,
			capacity.LowerMinValues(s.W.Options.RequirementsOf(p, m.asLoads(takes)),
				o.OnlyOption())
	}
	some, charge, low, missing := m.mostTakes(takes)
	if some != nil {
		return some, charge, low
	}
	first := takes[0].Batch
	first.refused = append(first.refused, p)
	class := first.View.Class
	why := fmt.Sprintf("pool %s: too few instance types can hold the pod for minValues: %s", p.Name,
		strings.Join(missing, ", "))
	// the last time says how much is used
	maps.DeleteFunc(s.Blocked[class.ID], func(x string, _ bool) bool { return strings.HasPrefix(x, why) })
	if over := s.Used.overLimitInPart(p); over != "" {
		why += " and " + over
	}
	s.Blocked[class.ID][why] = true
	return nil, resources.List{}, nil
}

// mostTakes are the most of the takes, from the first on, that leave enough types; nil and what is missing when the
// first pod alone does not. The fewer pods, the more types: so they are found by bisection.
func (m minValuesFit) mostTakes(takes []BatchTake) (best []BatchTake, charge resources.List,
	low capacity.LoweredMinValues,
	missing []string) {
	low = m.lowerForFirst(m.asLoads(takes[:1]))
	for least, most := 0, countPods(takes); least < most; {
		n := most
		if missing != nil {
			n = (least + most + 1) / 2
		}
		some := firstOf(takes, n)
		largest, lacks := m.largestNeeded(m.asLoads(some), low)
		if len(lacks) > 0 {
			most, missing = n-1, lacks
			continue
		}
		least, best, charge = n, some, largest
	}
	if best != nil && missing != nil {
		best = m.withLater(best, takes[len(best):], charge, low)
	}
	return best, charge, low, missing
}

// lowerForFirst returns the MinValues that the first pod of the loads lowers, where they may be lowered.
func (m minValuesFit) lowerForFirst(loads []capacity.PodLoad) capacity.LoweredMinValues {
	if !m.a.W.S.Rules.RelaxMinValues {
		return nil
	}
	first := loads[0]
	first.Pods = first.Pods[:1]
	opts, set := m.options([]capacity.PodLoad{first})
	return capacity.LowerMinValues(set, opts)
}

// ChargeNode returns what a new node of the offering with the loads takes of the limits of its pool, as that is used
// now, and the MinValues that are lowered for it. It is false where too few types hold the loads, or limits are short.
func (op NodeOpener) ChargeNode(o *capacity.Offering, loads []capacity.PodLoad) (charge resources.List,
	low capacity.LoweredMinValues, ok bool) {
	p := o.InstanceType.Pool
	if charge = o.InstanceType.Type.Capacity; p.MinValues() {
		m := minValuesFit{op.A, o, op.A.Used.Pools[p.ID]}
		low = m.lowerForFirst(loads)
		var missing []string
		if charge, missing = m.largestNeeded(loads, low); len(missing) > 0 {
			return charge, low, false
		}
	}
	return charge, low, !op.A.Used.ExceedsLimits(p, charge)
}

// largestNeeded is the capacity of the largest type that a node with the loads must be able to become, and what is
// missing where too few types can hold them.
func (m minValuesFit) largestNeeded(loads []capacity.PodLoad, low capacity.LoweredMinValues) (charge resources.List,
	missing []string) {
	opts, set := m.options(loads)
	set = low.ApplyTo(set)
	if missing = capacity.LackingMinValues(set, opts); len(missing) > 0 {
		return charge, missing
	}
	charge = m.offering.InstanceType.Type.Capacity
	for i, is := range capacity.MarkNeededForMinValues(opts, set) {
		if is {
			charge = charge.Max(opts[i].Model.Type.Capacity)
		}
	}
	return charge, nil
}

// maxLater caps the tries of a node that MinValues keep small with pods that come after those for which it has no room.
// Four times gives the workloads of infra/lab/ablation the same plans.
const maxLater = 2

// withLater adds to the takes those of the later ones that leave enough types and need no larger ones. Takes that must
// be together, or near pods that may be left out, are not added.
func (m minValuesFit) withLater(takes, later []BatchTake, charge resources.List,
	low capacity.LoweredMinValues) []BatchTake {
	tries := maxLater
	for _, t := range later {
		if t.Batch.whole || t.Batch.View.HasHostAffinity() {
			continue
		}
		for ; t.N > 0 && tries > 0; t.N /= 2 {
			tries--
			more := append(slices.Clone(takes), t)
			largest, missing := m.largestNeeded(m.asLoads(more), low)
			if len(missing) == 0 && largest.FitsIn(charge) {
				takes = more
				break
			}
		}
	}
	return takes
}

// options are all models that can hold the loads.
func (m minValuesFit) options(loads []capacity.PodLoad) ([]capacity.TypeOption, requirements.Set) {
	return m.a.W.Options.LaunchOptions(m.offering.InstanceType.Pool, m.inUse, loads, true)
}

// maxJoins caps the tries of a solution for pods that may join a new node of a pool with MinValues.
const maxJoins = 1000

// mostJoining returns how many of n pods of the batch may join the new node. So many join that enough types hold all
// for its pool's MinValues. None that is needed is larger than what the node takes of the pool's limits.
func (s *Solution) mostJoining(batch *PodBatch, b *capacity.Bin, alt, n int) int {
	p := b.Offering.InstanceType.Pool
	if !p.MinValues() || b.Offering.Limited() {
		return n
	}
	m := minValuesFit{s, b.Offering, s.Used.Pools[p.ID]}
	m.inUse.List = m.inUse.List.Sub(b.Takes)
	m.inUse.Nodes--
	least, tried := 0, n
	for most := n; least < most; tried = (least + most + 1) / 2 {
		if s.joins++; s.joins > maxJoins {
			break
		}
		loads := append(slices.Clone(b.Load), m.asLoads([]BatchTake{{batch, alt, tried}})...)
		if largest, missing := m.largestNeeded(loads, b.Low); len(missing) == 0 && largest.FitsIn(b.Takes) {
			least = tried
		} else {
			most = tried - 1
		}
	}
	return least
}

// asLoads are the takes as a bin would have them.
func (m minValuesFit) asLoads(takes []BatchTake) []capacity.PodLoad {
	out := make([]capacity.PodLoad, len(takes))
	for i, t := range takes {
		out[i] = t.LoadOf(m.a.Rest[t.Batch.View.Class.ID][:t.N])
	}
	return out
}

// countPods counts those of the takes.
func countPods(takes []BatchTake) int {
	n := 0
	for _, t := range takes {
		n += t.N
	}
	return n
}

// firstOf are the first n pods of the takes.
func firstOf(takes []BatchTake, n int) []BatchTake {
	var out []BatchTake
	for _, t := range takes {
		if t.N = min(t.N, n); t.N > 0 {
			out = append(out, t)
		}
		n -= t.N
	}
	return out
}
