package binpack

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// explainUnplaced explains every pod without a home. Pods that are alike share the text.
func (a *solution) explainUnplaced() []plan.Unplaced {
	var out []plan.Unplaced
	for i, k := range a.w.kinds {
		if len(a.rest[i]) == 0 {
			continue
		}
		why := a.refusalsFor(k)
		for _, p := range a.rest[i] {
			out = append(out, plan.Unplaced{Pod: p, Why: why})
		}
	}
	return out
}

// refusalsFor lists what kept the kind from every pool, and what kept it back whatever the pool.
func (a *solution) refusalsFor(k *podClass) []string {
	a.w.planted(StageExplain, k, nil)
	if len(k.lastRelaxation().wish.nodeAlternatives(true)) == 0 {
		return []string{"no node can meet what the pod asks for: its node selector, node affinity and volumes contradict each other"}
	}
	if k.stays {
		return []string{"it stays on its node, which is being replaced, until there is room elsewhere"}
	}
	out := slices.Sorted(maps.Keys(a.blocked[k.id]))
	held := len(out) > 0
	var pools poolRefusals
	for _, p := range a.w.inOrder(k.lastRelaxation().admit) {
		if !pools.wantsMore() {
			continue
		}
		if why := a.poolRefusal(k.lastRelaxation(), p); why != "" {
			pools.addRefusal(p.Name, why)
			continue
		}
		switch {
		case a.atMost():
			pools.addRefusal(p.Name, fmt.Sprintf("the %d new nodes that one pass may make are used up, the next pass goes on", a.w.s.Rules.MaxClaims))
		case !held:
			pools.addRefusal(p.Name, a.explainCrowding(k.lastRelaxation()))
		}
	}
	for _, s := range a.w.skipped {
		pools.addRefusal(s.Pool, s.Why)
	}
	out = append(out, pools.refusalLines()...)
	if len(a.w.pools)+len(a.w.skipped) == 0 {
		out = append(out, "there is no NodePool")
	}
	return out
}

// explainCrowding explains a kind that a pool could hold were it not for other pods.
func (a *solution) explainCrowding(v *relaxedPod) string {
	for _, r := range v.host {
		if r.what == follow {
			return "pod affinity over " + labelHost + ": no node has both the pods it must be near and room for it"
		}
	}
	return "its host ports or rules of other pods keep it from every node"
}

// poolRefusal is all that keeps the pool from making a node for the view, empty when it could.
func (a *solution) poolRefusal(v *relaxedPod, p *pool) string {
	a.w.planted(StageExplain, v.kind, p)
	var parts []string
	for _, t := range cluster.Untolerated(p.Taints, v.admit.tolerations) {
		parts = append(parts, "taint "+t.String()+" is not tolerated")
	}
	if why := v.conflictingLabels(p); why != "" {
		parts = append(parts, why)
	}
	switch {
	case p.aside != "" && len(parts) == 0:
		return p.aside
	case p.aside == "" && !v.wantsOtherPools(p):
		parts = append(parts, a.offerRefusals(v, p, len(parts) > 0)...)
	}
	return strings.Join(parts, " and ")
}

// wantsOtherPools reports whether the view wants nodes of other pools by their names; then it does not matter what this
// one has.
func (v *relaxedPod) wantsOtherPools(p *pool) bool {
	return !slices.ContainsFunc(v.admit.alternative,
		func(alt requirements.Set) bool { return alt.Has(labelPool, p.Name) })
}

// offerRefusals is what the pool's offers have against the view: of those that it may use, or of all of them where the
// pool is refused anyhow and only what holds for each is told.
func (a *solution) offerRefusals(v *relaxedPod, p *pool, refused bool) []string {
	var fitting, all, now []*poolOffering
	for _, o := range p.offers {
		if !refused && v.admit.firstAlternative(o) < 0 {
			continue
		}
		all = append(all, o)
		if fitCount(v.kind.need, o.room) > 0 {
			fitting = append(fitting, o)
			if o.Available {
				now = append(now, o)
			}
		}
	}
	beside := a.w.besideDaemons(v, p)
	switch {
	case len(p.models) == 0:
		return []string{"no instance type meets its requirements"}
	case len(all) == 0 && beside != "":
		return []string{beside}
	case len(all) == 0:
		return []string{"no instance type meets " + wantedLabels(v)}
	case len(fitting) == 0 && beside != "":
		return []string{tooBig(v, all), beside}
	case len(fitting) == 0:
		return []string{tooBig(v, all)}
	}
	var out []string
	switch {
	case len(now) == 0:
		out = append(out, "nothing that holds the pod is to be had now: "+notSold(fitting))
		now = fitting
	case onlyReserved(now):
		out = append(out, "the capacity reservations that the pod may use have no room left")
	}
	if over := a.overLimit(p, now); over != "" {
		out = append(out, over)
	}
	return out
}

// besideDaemons names the DaemonSets that keep the view off nodes of the pool that it could be on otherwise.
func (w *problem) besideDaemons(v *relaxedPod, p *pool) string {
	if len(v.admit.exclusions) == 0 {
		return ""
	}
	alone := w.admissionFor(v.wish.nodeAlternatives(true), v.wish.effectiveTolerations())
	var names []string
	for _, x := range v.admit.exclusions {
		if slices.ContainsFunc(p.offers, func(o *poolOffering) bool {
			return o.runs(x) &&
				alone.firstAlternative(o) >= 0
		}) {
			names = append(names, w.daemons[x.daemon].pod.Key())
		}
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	return "required pod anti-affinity keeps the pod off nodes that run DaemonSet " +
		strings.Join(slices.Compact(names), ", ")
}

// conflictingLabels names what the view wants of labels that the pool itself rules out.
func (v *relaxedPod) conflictingLabels(p *pool) string {
	var first []string
	for _, alt := range v.admit.alternative {
		var parts []string
		for _, r := range p.req.Refusals(alt, wellKnown) {
			if mine, ok := p.req.Get(r.Key); ok {
				parts = append(parts, fmt.Sprintf("requires %s, pod wants %s", mine, r))
			} else {
				parts = append(parts, fmt.Sprintf("gives its nodes no label %s, pod wants %s", r.Key, r))
			}
		}
		if len(parts) == 0 {
			return ""
		}
		if first == nil {
			first = parts
		}
	}
	return strings.Join(first, " and ")
}

func wantedLabels(v *relaxedPod) string {
	var parts []string
	for _, alt := range v.admit.alternative {
		if alt.Len() > 0 {
			parts = append(parts, alt.String())
		}
	}
	if len(parts) > 3 {
		parts = append(parts[:3], fmt.Sprintf("%d more alternatives", len(parts)-3))
	}
	return "what the pod wants: " + strings.Join(parts, ", or ")
}

// tooBig names the resources that no type has enough of, and the most there is of them.
func tooBig(v *relaxedPod, all []*poolOffering) string {
	need := v.kind.pod.Need
	var most resources.List
	var daemons bool
	for _, o := range all {
		most = most.Max(o.model.typ.Allocatable)
		daemons = daemons || len(o.daemons) > 0
	}
	what := need.With(resources.Pods, 0).String()
	less := ""
	if daemons {
		less = ", less what its daemons take"
	}
	short := need.Short(most)
	if len(short) == 0 {
		return fmt.Sprintf("no instance type is big enough for %s at once%s", what, less)
	}
	var parts []string
	for _, name := range short {
		parts = append(parts, name+"="+resources.Format(name, most.Get(name)))
	}
	if need.CPU >= 1_000_000*1000 {
		less += "; it asks for a million cores or more: is M (million) written where m (thousandth) is meant?"
	}
	return fmt.Sprintf("no instance type is big enough for %s; the largest has %s%s", what, strings.Join(parts, " "),
		less)
}

// notSold sums up why offers are not available.
func notSold(offers []*poolOffering) string {
	seen := map[string]int{}
	for _, o := range offers {
		why := o.Why
		if why == "" {
			why = "not sold"
		}
		seen[why]++
	}
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(seen)) {
		parts = append(parts, fmt.Sprintf("%d offers %s", seen[why], why))
	}
	return strings.Join(parts, ", ")
}

// overLimit names the limits in the way when every offer breaks one.
func (a *solution) overLimit(p *pool, offers []*poolOffering) string {
	broken := map[string]bool{}
	for _, o := range offers {
		over := p.exceededLimits(a.usage[p.id], o.model.typ.Capacity)
		if len(over) == 0 {
			return ""
		}
		for _, name := range over {
			broken[name] = true
		}
	}
	return a.limitTexts(p, broken)
}

// overLimitInPart names the limits that leave out some of the pool's types.
func (a *solution) overLimitInPart(p *pool) string {
	broken := map[string]bool{}
	for _, m := range p.forSale {
		for _, name := range p.exceededLimits(a.usage[p.id], m.typ.Capacity) {
			broken[name] = true
		}
	}
	return a.limitTexts(p, broken)
}

// limitTexts tells for each of the limits what it is and how much is used.
func (a *solution) limitTexts(p *pool, broken map[string]bool) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		used := a.usage[p.id].list.Get(name)
		if name == limitNodes {
			used = a.usage[p.id].nodes
		}
		parts = append(parts, overText(p, name, used))
	}
	return strings.Join(parts, " and ")
}

func overText(p *pool, name string, used int64) string {
	if name == cluster.LimitUSD {
		return fmt.Sprintf("limit of %.4f USD/h would be exceeded: %.4f used", inUSD(p.Limits.Get(name)), inUSD(used))
	}
	return fmt.Sprintf("limit %s %s would be exceeded: %s used", name, resources.Format(name, p.Limits.Get(name)),
		resources.Format(name, used))
}
