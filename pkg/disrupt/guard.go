package disrupt

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/plan"
	"joiner/pkg/require"
)

// guard narrows the replacements so that whatever EC2 gives of what they name, the pods run for less than before. A replacement is
// bought as chosen, spot or on-demand: falling back to the dearer one would be a loss (spec core.md §6.4). It is false where a
// spot node would be replaced by spot with so few types to choose from that EC2 would take it away soon, or where a minValues of
// the pool does not hold any more.
func (v *view) guard(set []*node, launches []plan.Launch) ([]plan.Launch, bool) {
	before, after := 0.0, 0.0
	allSpot := true
	for _, n := range set {
		before += n.price
		allSpot = allSpot && n.offer.CapacityType == catalog.Spot
	}
	for _, l := range launches {
		after += l.Choice.Price
	}
	if after >= before {
		for _, n := range set {
			n.kept = refuse{"worth", "nothing cheaper was found for its pods"}
		}
		return nil, false
	}
	out := make([]plan.Launch, len(launches))
	for i, l := range launches {
		least := flexibility{types: 1}
		if allSpot && l.Choice.CapacityType == catalog.Spot {
			least = v.flexible(set, launches)
		}
		narrow, ok := l, true
		if len(l.Choice.Paid) == 0 { // else it is one type already, which costs more as soon as nothing covers it
			narrow, ok = v.narrowed(l, l.Choice.Price*before/after, least)
		}
		if !ok || !least.met(v.flexibilityOf(narrow)) {
			for _, n := range set {
				n.kept = refuse{"flexibility", "too few cheaper instance types could replace it"}
			}
			return nil, false
		}
		out[i] = narrow
	}
	return out, true
}

// settle writes on the replacements until when the command has paid for moving the pods, at the rate at which it saves. What old and new
// nodes cost side by side counts for whether a move pays; it is spent by then, and a longer bond spares no pod a second move that has not paid.
// The payback time is longer: a command pays within that.
func (v *view) settle(c Command) {
	paid := time.Duration(v.uproots(c) / c.SavesUSD * float64(time.Hour))
	for i := range c.Launches {
		l := &c.Launches[i]
		if l.Annotations = maps.Clone(l.Annotations); l.Annotations == nil {
			l.Annotations = map[string]string{}
		}
		l.Annotations[AnnotationSettled] = v.now().Add(max(paid, leastSettled)).UTC().Format(time.RFC3339)
	}
}

// leastSettled is for how long replacements are left alone at least.
const leastSettled = 10 * time.Minute

// flexibility is from how much EC2 can choose: types, and pools of capacity, which are types in zones.
type flexibility struct{ types, pools int }

func (f flexibility) met(by flexibility) bool { return by.types >= f.types && by.pools >= f.pools }

// flexible is from how much EC2 must be able to choose a spot replacement for spot nodes. For one node by one it is so many types that a
// chain of ever cheaper likes ends (spec core.md §6.4). Where several nodes become fewer or smaller ones there is no such chain, and the
// original asks for nothing; here a sixth as many pools of capacity are wanted.
func (v *view) flexible(set []*node, launches []plan.Launch) flexibility {
	if len(set) == 1 && len(launches) == 1 {
		return flexibility{types: v.rules().spotTypes}
	}
	return flexibility{types: 1, pools: max(1, v.rules().spotTypes/6)}
}

// flexibilityOf is from how much EC2 can choose for the launch.
func (v *view) flexibilityOf(l plan.Launch) flexibility {
	f := flexibility{types: len(l.Types)}
	p, _ := v.s.PoolOf(l.Pool)
	for _, name := range l.Types {
		t, _ := v.typeIn(p, name)
		zones := map[string]bool{}
		for _, o := range t.Offerings {
			if o.Available && o.Meets(l.Requirements) {
				zones[o.Zone] = true
			}
		}
		f.pools += len(zones)
	}
	return f
}

// narrowed leaves the launch the types that cost less than most USD per hour in every zone that they can come in; where those are not
// flexible enough or the choice is not among them, in so many of the zones in which the choice costs least as leave most pools of capacity.
func (v *view) narrowed(l plan.Launch, most float64, least flexibility) (plan.Launch, bool) {
	p, ok := v.s.PoolOf(l.Pool)
	if !ok {
		return l, false
	}
	req := l.Requirements.And(require.Of(v1.LabelCapacityType, l.Choice.CapacityType))
	best, found := v.limited(p, l, req, most)
	if have := v.flexibilityOf(best); !found || !least.met(have) {
		if !found {
			have = flexibility{}
		}
		zones := v.zonesOf(p, l, req)
		for n := range zones {
			x, ok := v.limited(p, l, req.And(require.Of(corev1.LabelTopologyZone, slices.Sorted(slices.Values(zones[:n+1]))...)), most)
			if f := v.flexibilityOf(x); ok && (!found || f.pools > have.pools) {
				best, found, have = x, true, f
			}
		}
	}
	if !found {
		return l, false
	}
	return best, v.diverse(p, best)
}

// limited is the launch with what costs less than most, false where the choice does not.
func (v *view) limited(p cluster.Pool, l plan.Launch, req require.Set, most float64) (plan.Launch, bool) {
	types := v.below(p, l.Types, req, most)
	if !slices.Contains(types, l.Choice.Type) {
		return l, false
	}
	l.Types = types
	l.Requirements = req.And(require.Of(corev1.LabelInstanceTypeStable, slices.Sorted(slices.Values(types))...))
	return l, true
}

// zonesOf are the zones in which the choice is to be had, the cheapest first.
func (v *view) zonesOf(p cluster.Pool, l plan.Launch, req require.Set) []string {
	t, _ := v.typeIn(p, l.Choice.Type)
	var sold []catalog.Offering
	for _, o := range t.Offerings {
		if o.Available && o.Meets(req) {
			sold = append(sold, o)
		}
	}
	slices.SortFunc(sold, func(a, b catalog.Offering) int {
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

// below are the types of which every offering that the requirements leave costs less than most.
func (v *view) below(p cluster.Pool, types []string, req require.Set, most float64) []string {
	var out []string
	for _, name := range types {
		t, _ := v.typeIn(p, name)
		worst := 0.0
		for _, o := range t.Offerings {
			if o.Available && o.Meets(req) {
				worst = max(worst, o.Price)
			}
		}
		if worst > 0 && worst < most {
			out = append(out, name)
		}
	}
	return out
}

// diverse reports whether the types of the launch still have as many values as each minValues asks for.
func (v *view) diverse(p cluster.Pool, l plan.Launch) bool {
	for _, r := range l.Requirements.All() {
		if r.MinValues == 0 {
			continue
		}
		seen := map[string]bool{}
		for _, name := range l.Types {
			t, _ := v.typeIn(p, name)
			q, _ := t.Requirements.Get(r.Key)
			for _, value := range q.Values {
				seen[value] = seen[value] || r.Has(value)
			}
		}
		n := 0
		for _, has := range seen {
			if has {
				n++
			}
		}
		if n < int(r.MinValues) {
			return false
		}
	}
	return true
}
