package provisioning

import (
	"cmp"
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/faultisolation"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/provisioning/ceiling"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/provisioning/stoppedcapacity"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/scheduling/binpack"
)

// Decision holds what a pass decides.
type Decision struct {
	Replacements []interruption.PendingReplacement // nodes to be left, as far as budgets let them go now
	Plan         plan.Plan                         // what is launched, removed and refused
	// what the decision fails about: it is to be in the next pass's snapshot
	Aside []cluster.Aside
}

// mostTries bounds how often a pass is decided anew in search of what the decision fails about.
const mostTries = 40

// Decide says what a pass does about the snapshot. Where the search for a lower price fails, the plan is the one that
// it would begin with. Pods and NodePools about which the rest fails are left out: the others get what they need.
func Decide(s cluster.Snapshot) Decision {
	d := faultisolation.Decide(s, s.Aside, faultisolation.Decision[Decision]{Take: decideWhole, Quick: decideQuickly,
		Tries: mostTries})
	out := d.Out
	out.Plan.Faults, out.Aside = d.Faults, d.Aside
	if len(d.Pods) > 0 {
		out.Plan.Unplaced = slices.SortedFunc(slices.Values(slices.Concat(out.Plan.Unplaced, d.Pods)),
			func(a, b plan.Unplaced) int { return cmp.Compare(a.Pod, b.Pod) })
	}
	if len(d.Pools) > 0 {
		out.Plan.Skipped = slices.SortedFunc(slices.Values(slices.Concat(out.Plan.Skipped, d.Pools)),
			func(a, b plan.Skip) int { return cmp.Compare(a.Pool, b.Pool) })
	}
	return out
}

// decideQuickly is decideWhole without the search for a lower price.
func decideQuickly(s cluster.Snapshot) Decision {
	s.Rules.PackingIterations = cluster.NoIterations
	return decideWhole(s)
}

// decideWhole is the decision about all that is in the snapshot.
func decideWhole(s cluster.Snapshot) Decision {
	s, restricted := topology.RestrictSelfAffinity(nomination.ResolveOwnerNominations(s))
	fixedSize := slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return p.Static })
	withoutSurplus := s
	if fixedSize {
		withoutSurplus = withoutClaims(s, staticcapacity.SurplusNodes(s))
	}
	asked := stoppedcapacity.IsAsked(s)
	var out Decision
	if asked {
		out = packWithStopped(s, withoutSurplus)
	} else {
		out = packWithReplacements(s, withoutSurplus)
	}
	out.Plan.Launches = rollout.AssignLaunches(s, out.Plan.Launches)
	if fixedSize {
		fixed := staticcapacity.NextPlan(s, overlays.ByPool(s, binpack.ResolveOfferings(s)),
			stoppedcapacity.Room(s, len(out.Plan.Launches)))
		out.Plan.Fixed, out.Plan.Removals, out.Plan.Short = fixed.Launches, fixed.Removals, fixed.Short
	}
	// a buffer is filled when nobody waits: what this pass launches counts for limits in the next
	if asked && len(out.Plan.AllLaunches())+len(out.Plan.Starts()) == 0 {
		refillBuffers(s, &out.Plan)
	}
	out.Plan = ceiling.LimitPlan(s, out.Plan)
	for i := range out.Plan.Unplaced {
		if u := &out.Plan.Unplaced[i]; restricted[u.Pod] != "" {
			u.Why = append(slices.Clip(u.Why), restricted[u.Pod])
		}
	}
	return out
}

// packWithStopped is packWithReplacements where pods may have stopped nodes. Those that were asked to start already are
// on their way.
func packWithStopped(s, withoutSurplus cluster.Snapshot) Decision {
	const rounds = 3 // each packs all pods again
	free, requested := stoppedcapacity.Startable(s)
	free = ceiling.WithinPace(s, free)
	s, withoutSurplus = stoppedcapacity.AsComing(s, requested), stoppedcapacity.AsComing(withoutSurplus, requested)
	out := packWithReplacements(s, withoutSurplus)
	types := overlays.ByPool(s, binpack.ResolveOfferings(s))
	for range rounds {
		if len(free) == 0 || len(out.Plan.Launches)+len(out.Plan.Unplaced) == 0 {
			break
		}
		with := packWithReplacements(stoppedcapacity.AsComing(s, free), stoppedcapacity.AsComing(withoutSurplus, free))
		dear := stoppedcapacity.TooDear(s, out.Plan, with.Plan, free, types)
		if dear == "" {
			with.Plan.Stopped = &plan.StoppedCapacity{Starts: stoppedcapacity.StartsIn(with.Plan, free, requested)}
			return with
		}
		delete(free, dear)
	}
	out.Plan.Stopped = &plan.StoppedCapacity{Starts: stoppedcapacity.StartsIn(out.Plan, nil, requested)}
	return out
}

// refillBuffers adds to the plan what buffers of stopped capacity lack and have too many.
func refillBuffers(s cluster.Snapshot, p *plan.Plan) {
	r := stoppedcapacity.NextRefill(s, binpack.ResolveOfferings(s), stoppedcapacity.Room(s, 0))
	p.Fixed, p.Removals = append(p.Fixed, r.Launches...), append(p.Removals, r.Removals...)
	p.Stopped.Filled, p.Stopped.Placed, p.Stopped.Unplaced = !r.Partly, r.Placed, r.Unplaced
}

// packWithReplacements packs the pods, those of nodes that are to be left too. withoutSurplus is the snapshot in which
// nodes that static pools have too many are going. Where that finds no room for all pods of such a node, the node
// stays, nothing is launched for the rest of its pods, and what it would have taken of its pool's budgets is for
// others, which are asked about in turn.
func packWithReplacements(s, withoutSurplus cluster.Snapshot) (out Decision) {
	const rounds = 3 // each packs all pods again
	noRoom := map[string]string{}
	for range rounds {
		out.Replacements = interruption.AdmitWithinBudgets(s, noRoom)
		view := interruption.WithoutAdmitted(withoutSurplus, out.Replacements)
		view.Rules.MaxClaims = interruption.ClaimsForReplacement(view, out.Replacements)
		out.Plan = ceiling.LimitPlan(s, binpack.Pods(view))
		found := interruption.BlockedByCapacity(s, out.Replacements, out.Plan)
		if len(found) == 0 {
			break
		}
		maps.Copy(noRoom, found)
	}
	out.Plan = nomination.NominatePods(s, out.Plan)
	return out
}

// withoutClaims is the snapshot in which those claims are being deleted, so that no pod is planned onto what the same
// pass removes. The snapshot given is not changed.
func withoutClaims(s cluster.Snapshot, removals []plan.Removal) cluster.Snapshot {
	if len(removals) == 0 {
		return s
	}
	s.Claims = slices.Clone(s.Claims)
	for i, c := range s.Claims {
		if slices.ContainsFunc(removals, func(r plan.Removal) bool { return r.Claim == c.Name }) {
			s.Claims[i].Deleting = s.Now
		}
	}
	return s
}
