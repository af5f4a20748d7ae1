package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/provisioning/staticcapacity"
	"joiner.sh/pkg/scheduling/binpack"
)

// ForNode finds what would let the node of the NodeClaim go. Nothing is asked where it goes as it is.
func ForNode(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, claim string, most Limits) Answer {
	if _, ok := nodeOf(s, claim); !ok || most.Work < 0 {
		return Answer{}
	}
	d := &disruption.Cache{}
	q := newQuestion(s, most, func(f family) bool { return f.launches },
		func(s cluster.Snapshot) (Outcome, bool) { return goes(s, m, sells, d, claim) })
	if _, ok := q.answer(s); ok {
		return Answer{}
	}
	return q.search(nodeFamilies(s, claim))
}

// nodeOf is the node of a NodeClaim that has one and is not leaving.
func nodeOf(s cluster.Snapshot, claim string) (cluster.StateNode, bool) {
	for _, h := range s.StateNodes() {
		if h.Claim != nil && h.Node != nil && h.Claim.Name == claim && !h.MarkedForDeletion() {
			return h, true
		}
	}
	return cluster.StateNode{}, false
}

// nodeFamilies are all edits that could let the node go.
func nodeFamilies(s cluster.Snapshot, claim string) []family {
	h, _ := nodeOf(s, claim)
	on := podsOn(s, h.Name())
	all := append(protectionFamilies(s, h, on), paybackFamily(s.Rules))
	all = append(all, poolFamilies(s, cluster.Pod{})...)
	for _, p := range on {
		if p.Reschedulable() {
			all = append(all, p.families(s)...)
		}
	}
	return all
}

// goes is what becomes of the node, if disruption may take it.
func goes(s cluster.Snapshot, m disruption.Memory, sells binpack.Offerings, d *disruption.Cache, claim string) (
	out Outcome, ok bool) {
	for _, r := range staticcapacity.SurplusNodes(s) {
		if r.Claim == claim {
			return Outcome{Brings: "its NodePool has one node less"}, true
		}
	}
	c, ok := disruption.AskAbout(s, m, sells, d, claim)
	if !ok {
		return out, false
	}
	out.Brings, out.AddsUSD = "it goes without replacement", -c.SavesUSD
	for i, l := range c.Launches {
		if out.Brings += ", " + l.Choice.Offer.String(); i == 0 {
			out.Brings, out.landing = "it goes for "+l.Choice.Offer.String(), landingOf(s, sells, l)
		}
	}
	out.Brings += fmt.Sprintf(", which saves %.2f USD a month", c.SavesUSD*instancetypes.HoursPerMonth)
	return out, true
}

// podsOn are the pods on the node, those together that the same object makes.
func podsOn(s cluster.Snapshot, node string) []pods {
	return podsAlike(s, func(p *cluster.Pod) bool {
		return p.NodeName == node && p.Active() && p.Owner != cluster.OwnerDaemonSet && p.Owner != cluster.OwnerNode
	})
}

// atDisruption is the path of what a NodePool says about disruption.
const atDisruption = "spec.disruption"

// protectionFamilies are edits of what keeps the node from disruption whatever it would save: the first of a node's
// families, since most nodes that stay do so for one of them.
func protectionFamilies(s cluster.Snapshot, h cluster.StateNode, on []pods) (out []family) {
	at := pathOf(atAnnotations, v1.AnnotationDoNotDisrupt)
	for i, n := range s.Nodes {
		if was := n.Annotations[v1.AnnotationDoNotDisrupt]; n.Name == h.Name() && was != "" {
			out = append(out, single("", target{"Node", "", n.Name}.edit(at, was, "", func(s *cluster.Snapshot) {
				s.Nodes[i].Annotations = withKey(s.Nodes[i].Annotations, v1.AnnotationDoNotDisrupt)
			})))
		}
	}
	for _, p := range on {
		e := p.edit(at, p.DoNotDisrupt, "", func(p *cluster.Pod) { p.DoNotDisrupt = "" })
		out = append(out, single("", e, p.DoNotDisrupt != ""))
	}
	for i, b := range s.Budgets {
		was := int64(b.DisruptionsAllowed)
		out = append(out, inSteps("", was, 1, selected(b, on), func(to int64) Edit {
			return target{"PodDisruptionBudget", b.Namespace, b.Name}.edit(pathOf("allowed disruptions"), fmt.Sprint(was),
				fmt.Sprint(to), func(s *cluster.Snapshot) {
					s.Budgets[i].DisruptionsAllowed, s.Budgets[i].FullyBlocking = int32(to), false
				}, nil)
		}))
	}
	for i, p := range s.Pools {
		if p.Name == h.Pool() {
			out = append(out, pool{p, i}.disruptionFamilies()...)
		}
	}
	return out
}

// selected is how many of the pods the budget is about.
func selected(b cluster.Budget, on []pods) (n int64) {
	for _, p := range on {
		if p.Namespace == b.Namespace && b.Selector.Matches(p.Labels) {
			n += int64(len(p.names))
		}
	}
	return n
}

// disruptionEdit changes what the pool says about disruption.
func (p pool) disruptionEdit(at path, from, to string, change func(*cluster.Disruption)) Edit {
	return p.edit(at, from, to, func(p *cluster.Pool) { change(&p.Disruption) })
}

// disruptionFamilies are all edits of what the pool says about disruption.
func (p pool) disruptionFamilies() (out []family) {
	d := p.Disruption
	one := func(is bool, at path, from, to string, change func(*cluster.Disruption)) {
		out = append(out, single(p.Name, p.disruptionEdit(at, from, to, change), is))
	}
	all, yes := string(v1.ConsolidationWhenEmptyOrUnderutilized), true
	one(d.Policy != all, pathOf(atDisruption, "consolidationPolicy"), d.Policy, all,
		func(d *cluster.Disruption) { d.Policy = all })
	one(d.Never, pathOf(atDisruption, "consolidateAfter"), "Never", "0s",
		func(d *cluster.Disruption) { d.Never, d.After = false, 0 })
	out = append(out, p.afterFamily())
	for i, b := range d.Budgets {
		out = append(out, p.budgetFamilies(i, b)...)
	}
	one(d.ReportOnly && d.Message == "", pathOf(atAnnotations, v1.AnnotationDisruption), "report", "act",
		func(d *cluster.Disruption) { d.ReportOnly = false })
	out = append(out, p.lowered(v1.AnnotationMinSavingsUSD, d.SavesUSD, 1000,
		func(d *cluster.Disruption, n float64) { d.SavesUSD = n }),
		p.lowered(v1.AnnotationMinSavingsPercent, d.SavesPercent, 10,
			func(d *cluster.Disruption, n float64) { d.SavesPercent = n }))
	one(d.SpotToSpot == nil || !*d.SpotToSpot, pathOf(atAnnotations, v1.AnnotationSpotToSpot), "", "true",
		func(d *cluster.Disruption) { d.SpotToSpot = &yes })
	return append(out, inSteps(p.Name, p.Replicas, -1, p.Replicas, func(to int64) Edit { // 0 but for static ones
		return p.edit(pathOf("spec.replicas"), fmt.Sprint(p.Replicas), fmt.Sprint(to),
			func(p *cluster.Pool) { p.Replicas = to }, to)
	}))
}

// afterFamily shortens consolidateAfter: by minutes, a short one by seconds.
func (p pool) afterFamily() family {
	was, step := p.Disruption.After, time.Minute
	if was < 10*time.Minute {
		step = time.Second
	}
	count := int64((was + step - 1) / step)
	return inSteps(p.Name, count, -1, count, func(n int64) Edit {
		to := time.Duration(n) * step
		return p.disruptionEdit(pathOf(atDisruption, "consolidateAfter"), was.String(), to.String(),
			func(d *cluster.Disruption) { d.After = to })
	})
}

// lowered is a threshold of an annotation that is lowered, in so many steps for one.
func (p pool) lowered(key string, was, parts float64, set func(*cluster.Disruption, float64)) family {
	count := int64(was*parts + 0.999)
	return inSteps(p.Name, count, -1, count, func(n int64) Edit {
		to := float64(n) / parts
		return p.disruptionEdit(pathOf(atAnnotations, key), formatDecimal(was), formatDecimal(to),
			func(d *cluster.Disruption) { set(d, to) })
	})
}

// mostNodes is how far the nodes of a budget are raised: to all, where they are a percentage. Half of it and double
// answer the same about 600 random nodes that stay.
const mostNodes = 100

// budgetFamilies raise the nodes of a budget, or shorten its hours.
func (p pool) budgetFamilies(i int, b cluster.NodeBudget) []family {
	edit := func(field, from, to string, change func(*cluster.NodeBudget)) Edit {
		at := pathOf(atDisruption, "budgets", elementAt(i), field)
		return p.disruptionEdit(at, from, to, func(d *cluster.Disruption) {
			d.Budgets = slices.Clone(d.Budgets)
			change(&d.Budgets[i])
		})
	}
	number, percent := strings.CutSuffix(b.Nodes, "%")
	was, _ := wholeNumber(number)
	minutes := int64(b.Duration / time.Minute) // 0 without a schedule
	return []family{inSteps(p.Name, was, 1, mostNodes, func(n int64) Edit {
		to := fmt.Sprint(n)
		if percent {
			to = fmt.Sprintf("%d%%", min(100, n))
		}
		return edit("nodes", b.Nodes, to, func(b *cluster.NodeBudget) { b.Nodes = to })
	}), inSteps(p.Name, minutes, -1, minutes-1, func(n int64) Edit {
		to := time.Duration(n) * time.Minute
		return edit("duration", b.Duration.String(), to.String(), func(b *cluster.NodeBudget) { b.Duration = to })
	})}
}

// paybackFamily has moves pay within a longer time.
func paybackFamily(r cluster.Settings) family {
	const mostHours = 24 // half of it and double answer the same about 600 random nodes that stay
	was := cmp.Or(r.ConsolidationPayback, time.Hour)
	return inSteps("", int64(was/time.Hour), 1, mostHours-int64(was/time.Hour), func(n int64) Edit {
		to := time.Duration(n) * time.Hour
		return setting("consolidationPayback", was.String(), to.String(),
			func(r *cluster.Settings) { r.ConsolidationPayback = to })
	})
}
