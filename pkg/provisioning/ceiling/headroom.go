package ceiling

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/binpack"
)

// minute is the time that a launch counts for maxNodesPerMinute: a minute, and the spread of invocations' clocks.
const minute = time.Minute + 5*time.Second

// headroom holds what the ceiling leaves, and what of it is taken.
type headroom struct {
	s     cluster.Snapshot
	types func(cluster.Pool) []instancetypes.Type

	nodes  int   // that exist or are on their way
	recent int   // of them those that count for maxNodesPerMinute
	begun  int   // launches of this pass
	spent  int64 // millionths of a USD per hour

	goingNodes int   // of nodes those that EC2 takes back
	goingUSD   int64 // of spent
}

// isBounded reports whether there is anything to keep to.
func isBounded(s cluster.Snapshot) bool { return s.Rules.Ceiling != (cluster.Ceiling{}) || s.Pace > 0 }

func newHeadroom(s cluster.Snapshot) *headroom {
	h := &headroom{s: s}
	if s.Rules.Ceiling.MillionthsUSD > 0 {
		h.types = overlays.ByPool(s, binpack.ResolveOfferings(s))
	}
	return h
}

// countClaims counts claims as there or on their way. One without an instance may get it at any moment, unless
// lifecycle has given it up and nobody may delete it.
func (h *headroom) countClaims(claims []cluster.Claim) {
	for _, c := range claims {
		if c.NeverLaunched(h.s.Now, h.s.Rules) {
			continue
		}
		usd := h.chargeOfClaim(c)
		h.nodes, h.spent = h.nodes+1, h.spent+usd
		if h.isRecent(c) {
			h.recent++
		}
		if isInterrupted(c) {
			h.goingNodes, h.goingUSD = h.goingNodes+1, h.goingUSD+usd
		}
	}
}

// isInterrupted reports whether EC2 takes the claim's instance back, and Joiner replaces it.
func isInterrupted(c cluster.Claim) bool {
	return !c.Deleting.IsZero() && c.Annotations[v1.AnnotationDrainAfterReplacement] != ""
}

func (h *headroom) isRecent(c cluster.Claim) bool {
	since := h.s.Now.Add(-minute)
	return c.ProviderID == "" || c.Condition(v1.ConditionLaunched).Since.After(since) || c.StartRequested().After(since)
}

// countStarts counts stopped instances that the plan starts as nodes that come.
func (h *headroom) countStarts(starts []plan.Start) {
	for _, start := range starts {
		i := slices.IndexFunc(h.s.Claims, func(c cluster.Claim) bool { return c.Name == start.Claim })
		if h.begun++; i >= 0 && !h.isRecent(h.s.Claims[i]) {
			h.recent++
		}
	}
}

// refusal says why the ceiling does not allow a node that may cost so much. Where going is true, nodes that EC2 takes
// back are taken as gone, and how fast nodes come does not matter: it is only asked whether the node may be stored.
func (h *headroom) refusal(usd int64, going bool) string {
	most, nodes, spent := h.s.Rules.Ceiling, h.nodes, h.spent
	if going {
		nodes, spent = nodes-h.goingNodes, spent-h.goingUSD
	}
	switch {
	case most.Nodes > 0 && nodes >= most.Nodes:
		return fmt.Sprintf("maxNodes is %d, and %d nodes are there or on their way", most.Nodes,
			h.nodes)
	case most.MillionthsUSD > 0 && spent+usd > most.MillionthsUSD:
		return fmt.Sprintf("maxUSDPerHour is %.4f, and %.4f are left of it for a node that may cost %.4f",
			cluster.USD(most.MillionthsUSD), cluster.USD(max(0, most.MillionthsUSD-spent)), cluster.USD(usd))
	case going:
		return ""
	case most.NodesPerMinute > 0 && h.recent >= most.NodesPerMinute:
		return fmt.Sprintf("maxNodesPerMinute is %d, and %d nodes came within the last minute or are on their way",
			most.NodesPerMinute, h.recent)
	case h.s.Pace > 0 && h.begun >= h.s.Pace:
		return fmt.Sprintf("the API server refuses requests as too many (429), so that one pass launches %d nodes at most",
			h.s.Pace)
	}
	return ""
}

// take counts a node that may cost so much.
func (h *headroom) take(usd int64) {
	h.nodes, h.recent, h.begun, h.spent = h.nodes+1, h.recent+1, h.begun+1, h.spent+usd
}

// chargeOfClaim returns the price of the claim's instance, or of the dearest that it may become: millionths of USD/h.
func (h *headroom) chargeOfClaim(c cluster.Claim) int64 {
	if h.types == nil {
		return 0
	}
	if offering := instancetypes.OfferingKeyOf(c.Labels); offering.Type != "" {
		usd, _ := h.s.Catalog.Charge(offering)
		return cluster.MillionthsUSD(usd)
	}
	pool, _ := h.s.PoolOf(c.Pool)
	pool.Name, pool.Class, pool.Revision = c.Pool, c.Class, c.Annotations[v1.AnnotationNodeRevision]
	return dearest(h.charges(pool, c.Requirements))
}

// typeCharge is the price of a type where it is dearest, in millionths of a USD per hour.
type typeCharge struct {
	name string
	usd  int64
}

// charges returns what EC2 charges at most for the types that a node of the pool with such requirements may become, the
// cheapest first. What is unavailable now may come back until the launch.
func (h *headroom) charges(pool cluster.Pool, set requirements.Set) (out []typeCharge) {
	for _, t := range h.types(pool) {
		if r, limited := set.Get(corev1.LabelInstanceTypeStable); limited && !r.Has(t.Name) ||
			!set.Intersects(t.Requirements) {
			continue
		}
		most, sold := int64(0), false
		for _, o := range t.Offerings {
			if o.Meets(set) {
				usd, _ := h.s.Catalog.Charge(o.OfferingKey)
				most, sold = max(most, cluster.MillionthsUSD(usd)), true
			}
		}
		if sold {
			out = append(out, typeCharge{t.Name, most})
		}
	}
	slices.SortFunc(out, func(a, b typeCharge) int {
		return cmp.Or(cmp.Compare(a.usd, b.usd), strings.Compare(a.name, b.name))
	})
	return out
}

func dearest(sorted []typeCharge) int64 {
	if len(sorted) == 0 {
		return 0
	}
	return sorted[len(sorted)-1].usd
}

// chargeOfLaunch returns the price of the dearest node that the launch may become, in millionths of USD/h.
func (h *headroom) chargeOfLaunch(l plan.Launch) int64 {
	if h.types == nil {
		return 0
	}
	return dearest(h.chargesOfLaunch(l))
}

func (h *headroom) chargesOfLaunch(l plan.Launch) []typeCharge {
	pool, _ := h.s.PoolOf(l.Pool)
	pool.Revision = l.Annotations[v1.AnnotationNodeRevision]
	return h.charges(pool, l.Requirements)
}

// withinPrice is the launch, one of so many that are wanted, with what it may cost. Near the ceiling it names no types
// that are dearer than its share of what is left, unless its choice is, or the launch needs as many types as it names.
func (h *headroom) withinPrice(l plan.Launch, wanted int) (plan.Launch, int64) {
	if h.types == nil {
		return l, 0
	}
	all := h.chargesOfLaunch(l)
	share := max(0, h.s.Rules.Ceiling.MillionthsUSD-h.spent) / int64(max(wanted, 1))
	if dearest(all) <= share || needsSeveral(l.Requirements) {
		return l, dearest(all)
	}
	most := int64(math.MaxInt64)
	for _, t := range all {
		if t.name == l.Choice.Type || l.Choice.Type == "" {
			most = min(most, max(share, t.usd))
		}
	}
	some := slices.DeleteFunc(all, func(t typeCharge) bool { return t.usd > most })
	names := lists.Of(some, func(t typeCharge) string { return t.name })
	slices.Sort(names)
	l.Requirements = l.Requirements.And(requirements.Of(corev1.LabelInstanceTypeStable, names...))
	l.Types = slices.DeleteFunc(slices.Clone(l.Types), func(name string) bool {
		_, kept := slices.BinarySearch(names, name)
		return !kept
	})
	return l, dearest(some)
}

// needsSeveral reports whether the set wants several values of a label to choose from.
func needsSeveral(set requirements.Set) bool {
	return slices.ContainsFunc(set.All(), func(r requirements.Requirement) bool { return r.MinValues > 0 })
}
