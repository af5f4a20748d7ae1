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

// explainer says why pods of a solution have no place.
type explainer struct{ a *solution }

// explainUnplaced explains every pod without a home. Pods that are alike share the text.
func (e *explainer) explainUnplaced() []plan.Unplaced {
	var out []plan.Unplaced
	for i, k := range e.a.w.classes.list {
		if len(e.a.rest[i]) == 0 {
			continue
		}
		why := e.refusalsFor(k)
		for _, p := range e.a.rest[i] {
			out = append(out, plan.Unplaced{Pod: p, Why: why})
		}
	}
	return out
}

// refusalsFor lists what kept the kind from every pool, and what kept it back whatever the pool.
func (e *explainer) refusalsFor(k *podClass) []string {
	e.a.w.faults.planted(StageExplain, k, nil)
	if len(k.lastRelaxation().wish.nodeAlternatives(true)) == 0 {
		return []string{"no node can meet what the pod asks for: its node selector, node affinity and volumes contradict each other"}
	}
	if k.stays {
		return []string{"it stays on its node, which is being replaced, until there is room elsewhere"}
	}
	out := slices.Sorted(maps.Keys(e.a.blocked[k.id]))
	held := len(out) > 0
	var pools poolRefusals
	for _, p := range e.a.w.catalog.inOrder(k.lastRelaxation().admit) {
		if !pools.wantsMore() {
			continue
		}
		if why := e.poolRefusal(k.lastRelaxation(), p); why != "" {
			pools.addRefusal(p.Name, why)
			continue
		}
		switch {
		case e.a.used.atMost():
			pools.addRefusal(p.Name, fmt.Sprintf("the %d new nodes that one pass may make are used up, the next pass goes on", e.a.w.s.Rules.MaxClaims))
		case !held:
			pools.addRefusal(p.Name, e.explainCrowding(k.lastRelaxation()))
		}
	}
	for _, s := range e.a.w.catalog.skipped {
		pools.addRefusal(s.Pool, s.Why)
	}
	out = append(out, pools.refusalLines()...)
	if len(e.a.w.catalog.pools)+len(e.a.w.catalog.skipped) == 0 {
		out = append(out, "there is no NodePool")
	}
	return out
}

// explainCrowding explains a kind that a pool could hold were it not for other pods.
func (e *explainer) explainCrowding(v *relaxedPod) string {
	for _, r := range v.host {
		if r.what == follow {
			return "pod affinity over " + labelHost + ": no node has both the pods it must be near and room for it"
		}
	}
	return "its host ports or rules of other pods keep it from every node"
}

// poolRefusal is all that keeps the pool from making a node for the view, empty when it could.
func (e *explainer) poolRefusal(v *relaxedPod, p *pool) string {
	e.a.w.faults.planted(StageExplain, v.kind, p)
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
		parts = append(parts, e.offerRefusals(v, p, len(parts) > 0)...)
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
func (e *explainer) offerRefusals(v *relaxedPod, p *pool, refused bool) []string {
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
	beside := e.a.w.catalog.besideDaemons(v, p)
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
	if over := e.overLimit(p, now); over != "" {
		out = append(out, over)
	}
	return out
}

// besideDaemons names the DaemonSets that keep the view off nodes of the pool that it could be on otherwise.
func (cat *catalog) besideDaemons(v *relaxedPod, p *pool) string {
	if len(v.admit.exclusions) == 0 {
		return ""
	}
	alone := cat.admissions.admissionFor(v.wish.nodeAlternatives(true), v.wish.effectiveTolerations())
	var names []string
	for _, x := range v.admit.exclusions {
		if slices.ContainsFunc(p.offers, func(o *poolOffering) bool {
			return o.runs(x) &&
				alone.firstAlternative(o) >= 0
		}) {
			names = append(names, cat.admissions.daemons[x.daemon].pod.Key())
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
func (e *explainer) overLimit(p *pool, offers []*poolOffering) string {
	broken := map[string]bool{}
	for _, o := range offers {
		over := p.exceededLimits(e.a.used.pools[p.id], o.model.typ.Capacity)
		if len(over) == 0 {
			return ""
		}
		for _, name := range over {
			broken[name] = true
		}
	}
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(broken)) {
		used := e.a.used.pools[p.id].list.Get(name)
		if name == limitNodes {
			used = e.a.used.pools[p.id].nodes
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
