package disruption

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
)

// priceGuard keeps replacements from costing more than they save.
type priceGuard struct {
	rules  disruptionRules
	poolOf func(name string) (cluster.Pool, bool)
	typeIn func(pool cluster.Pool, name string) (instancetypes.Type, bool) // as the pool sees it
}

func newPriceGuard(st *State) priceGuard { return priceGuard{st.rules, st.snapshot.PoolOf, st.typeIn} }

// guardReplacements narrows the replacements so that whatever EC2 gives of what they name, the pods run for less than
// before. A replacement is bought as chosen, spot or on-demand, because the dearer one would be a loss. It is false
// where spot would be replaced by spot with so few types to choose from that EC2 would take it away soon, or where a
// minValues of the pool does not hold any more.
func (guard priceGuard) guardReplacements(set []*stateNode, launches []plan.Launch) ([]plan.Launch, bool) {
	before, after := 0.0, plan.Plan{Launches: launches}.TotalPrice()
	allSpot := true
	for _, n := range set {
		before += n.price
		allSpot = allSpot && n.offering.CapacityType == instancetypes.Spot
	}
	if after >= before {
		refuseSet(set, refusal{IneligibleNoCheaperAlternative, "nothing cheaper was found for its pods"})
		return nil, false
	}
	if allSpot && slices.ContainsFunc(launches, mayBeSpot) && guard.refuseSpotToSpot(set) {
		return nil, false
	}
	out := make([]plan.Launch, len(launches))
	for i, l := range launches {
		least := spotFlexibility{types: 1}
		if allSpot && isSpot(l) {
			least = guard.requiredFlexibility(set, launches)
		}
		narrow, ok := l, true
		if len(l.Choice.Paid) == 0 { // else it is one type already, which costs more as soon as nothing covers it
			narrow, ok = guard.narrowToCheaper(l, l.Choice.Price*before/after, least)
		}
		if !ok || !least.isMet(guard.flexibilityOf(narrow)) {
			refuseSet(set, refusal{IneligibleFlexibility, "too few cheaper instance types could replace it"})
			return nil, false
		}
		out[i] = narrow
	}
	return out, true
}

func isSpot(l plan.Launch) bool { return l.Choice.CapacityType == instancetypes.Spot }

// mayBeSpot reports whether the requirements of the launch allow spot, whatever is chosen and to be had now.
func mayBeSpot(l plan.Launch) bool {
	r, narrowed := l.Requirements.Get(v1.LabelCapacityType)
	return !narrowed || r.Has(instancetypes.Spot)
}

// refuseSpotToSpot reports whether a node of the set may not be replaced by a spot node, and notes why on all of them.
// The annotation of its NodePool decides, else the setting.
func (guard priceGuard) refuseSpotToSpot(set []*stateNode) bool {
	i := slices.IndexFunc(set, func(n *stateNode) bool {
		if n.pool != nil && n.pool.Disruption.SpotToSpot != nil {
			return !*n.pool.Disruption.SpotToSpot
		}
		return guard.rules.noSpotToSpot
	})
	if i < 0 {
		return false
	}
	refuseSet(set, refusal{IneligibleSpotToSpot,
		"SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node"})
	return true
}

// spotFlexibility counts what EC2 can choose from: types, and capacity pools, which are types in zones.
type spotFlexibility struct{ types, pools int }

func (f spotFlexibility) isMet(by spotFlexibility) bool {
	return by.types >= f.types && by.pools >= f.pools
}

// requiredFlexibility returns how much EC2 must be able to choose from for a spot replacement of spot nodes. For one
// node by one it is the setting, so that a chain of ever cheaper replacements ends. Where several nodes become fewer or
// smaller ones there is no such chain; there a sixth as many capacity pools are enough.
func (guard priceGuard) requiredFlexibility(set []*stateNode, launches []plan.Launch) spotFlexibility {
	if len(set) == 1 && len(launches) == 1 {
		return spotFlexibility{types: guard.rules.minSpotInstanceTypes}
	}
	return spotFlexibility{types: 1, pools: max(1, guard.rules.minSpotInstanceTypes/6)}
}

// flexibilityOf returns how much EC2 can choose from for the launch.
func (guard priceGuard) flexibilityOf(l plan.Launch) spotFlexibility {
	f := spotFlexibility{types: len(l.Types)}
	p, _ := guard.poolOf(l.Pool)
	for _, name := range l.Types {
		t, _ := guard.typeIn(p, name)
		f.pools += len(lists.Set(soldOf(t, l.Requirements), func(o instancetypes.Offering) string { return o.Zone }))
	}
	return f
}

// narrowToCheaper leaves the launch the types that cost less than most USD per hour in every zone that they can come
// in. Where those are not flexible enough or the choice is not among them, it leaves the cheapest zones of the choice,
// as many as leave most capacity pools.
func (guard priceGuard) narrowToCheaper(l plan.Launch, most float64, least spotFlexibility) (plan.Launch, bool) {
	p, ok := guard.poolOf(l.Pool)
	if !ok {
		return l, false
	}
	req := l.Requirements.And(requirements.Of(v1.LabelCapacityType, l.Choice.CapacityType))
	best, found := guard.limitPrice(p, l, req, most)
	if have := guard.flexibilityOf(best); !found || !least.isMet(have) {
		if !found {
			have = spotFlexibility{}
		}
		zones := guard.zonesOf(p, l, req)
		for n := range zones {
			x, ok := guard.limitPrice(p, l, req.And(requirements.Of(corev1.LabelTopologyZone,
				slices.Sorted(slices.Values(zones[:n+1]))...)), most)
			if f := guard.flexibilityOf(x); ok && (!found || f.pools > have.pools) {
				best, found, have = x, true, f
			}
		}
	}
	if !found {
		return l, false
	}
	return best, guard.keepsMinValues(p, best)
}

// limitPrice returns the launch with the types that cost less than most, false where the choice does not.
func (guard priceGuard) limitPrice(p cluster.Pool, l plan.Launch, req requirements.Set, most float64) (plan.Launch,
	bool) {
	types := guard.typesBelow(p, l.Types, req, most)
	if !slices.Contains(types, l.Choice.Type) {
		return l, false
	}
	l.Types = types
	l.Requirements = req.And(requirements.Of(corev1.LabelInstanceTypeStable, slices.Sorted(slices.Values(types))...))
	return l, true
}

// soldOf returns the offerings of the type that are to be had and meet the requirements.
func soldOf(t instancetypes.Type, req requirements.Set) []instancetypes.Offering {
	return lists.Where(t.Offerings, func(o instancetypes.Offering) bool { return o.Available && o.Meets(req) })
}

// zonesOf returns the zones in which the choice is sold, the cheapest first.
func (guard priceGuard) zonesOf(p cluster.Pool, l plan.Launch, req requirements.Set) []string {
	t, _ := guard.typeIn(p, l.Choice.Type)
	sold := soldOf(t, req)
	slices.SortFunc(sold, func(a, b instancetypes.Offering) int {
		return cmp.Or(cmp.Compare(a.Price, b.Price), strings.Compare(a.Zone, b.Zone))
	})
	var out []string
	for _, o := range sold {
		if !slices.Contains(out, o.Zone) {
			out = append(out, o.Zone)
		}
	}
	return out
}

// typesBelow returns the types of which every offering that the requirements leave costs less than most.
func (guard priceGuard) typesBelow(p cluster.Pool, types []string, req requirements.Set, most float64) []string {
	var out []string
	for _, name := range types {
		t, _ := guard.typeIn(p, name)
		worst := 0.0
		for _, o := range soldOf(t, req) {
			worst = max(worst, o.Price)
		}
		if worst > 0 && worst < most {
			out = append(out, name)
		}
	}
	return out
}

// keepsMinValues reports whether the types of the launch still have as many values as each minValues asks for.
func (guard priceGuard) keepsMinValues(p cluster.Pool, l plan.Launch) bool {
	for _, r := range l.Requirements.All() {
		if r.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, name := range l.Types {
			t, _ := guard.typeIn(p, name)
			q, _ := t.Requirements.Get(r.Key)
			for _, value := range q.Values {
				if r.Has(value) {
					seen[value] = true
				}
			}
		}
		if len(seen) < r.MinValues {
			return false
		}
	}
	return true
}
