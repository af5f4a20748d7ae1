package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// atDisruption is the path of what a NodePool says about disruption.
const atDisruption = "spec.disruption"

// protectionFamilies are edits of what keeps the node from disruption whatever it would save: the first of a node's
// families, since most nodes that stay do so for one of them.
func protectionFamilies(s cluster.Snapshot, h cluster.StateNode, on []pods) (out []family) {
	at := pathOf(atAnnotations, v1.AnnotationDoNotDisrupt)
	for i, n := range s.Nodes {
		if was := n.Annotations[v1.AnnotationDoNotDisrupt]; n.Name == h.Name() && was != "" {
			e := target{"Node", "", n.Name}.edit(at, was, "")
			e.make = func(s *cluster.Snapshot) {
				s.Nodes[i].Annotations = withKey(s.Nodes[i].Annotations, v1.AnnotationDoNotDisrupt, "")
			}
			out = append(out, single("", e))
		}
	}
	for _, p := range on {
		if p.DoNotDisrupt != "" {
			out = append(out, single("", p.edit(at, p.DoNotDisrupt, "", func(p *cluster.Pod) { p.DoNotDisrupt = "" })))
		}
	}
	for i, b := range s.Budgets {
		was := int64(b.DisruptionsAllowed)
		out = append(out, inSteps("", was, 1, selected(b, on), func(to int64) Edit {
			e := target{"PodDisruptionBudget", b.Namespace, b.Name}.edit(pathOf("allowed disruptions"), fmt.Sprint(was),
				fmt.Sprint(to), nil)
			e.make = func(s *cluster.Snapshot) {
				s.Budgets[i].DisruptionsAllowed, s.Budgets[i].FullyBlocking = int32(to), false
			}
			return e
		}))
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
	one := func(at path, from, to string, change func(*cluster.Disruption)) {
		out = append(out, single(p.Name, p.disruptionEdit(at, from, to, change)))
	}
	if all := string(v1.ConsolidationWhenEmptyOrUnderutilized); d.Policy != all {
		one(pathOf(atDisruption, "consolidationPolicy"), d.Policy, all, func(d *cluster.Disruption) { d.Policy = all })
	}
	if d.Never {
		one(pathOf(atDisruption, "consolidateAfter"), "Never", "0s",
			func(d *cluster.Disruption) { d.Never, d.After = false, 0 })
	} else {
		out = append(out, p.afterFamily())
	}
	for i, b := range d.Budgets {
		out = append(out, p.budgetFamilies(i, b)...)
	}
	if d.ReportOnly && d.Message == "" {
		one(pathOf(atAnnotations, v1.AnnotationDisruption), "report", "act",
			func(d *cluster.Disruption) { d.ReportOnly = false })
	}
	out = append(out, p.lowered(v1.AnnotationMinSavingsUSD, d.SavesUSD, 1000,
		func(d *cluster.Disruption, n float64) { d.SavesUSD = n }),
		p.lowered(v1.AnnotationMinSavingsPercent, d.SavesPercent, 10,
			func(d *cluster.Disruption, n float64) { d.SavesPercent = n }))
	if yes := true; d.SpotToSpot == nil || !*d.SpotToSpot {
		one(pathOf(atAnnotations, v1.AnnotationSpotToSpot), "", "true",
			func(d *cluster.Disruption) { d.SpotToSpot = &yes })
	}
	if p.Static {
		out = append(out, inSteps(p.Name, p.Replicas, -1, p.Replicas, func(to int64) Edit {
			return p.edit(pathOf("spec.replicas"), fmt.Sprint(p.Replicas), fmt.Sprint(to),
				func(p *cluster.Pool) { p.Replicas = to }, to)
		}))
	}
	return out
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
	out := []family{inSteps(p.Name, was, 1, mostNodes, func(n int64) Edit {
		to := fmt.Sprint(n)
		if percent {
			to = fmt.Sprintf("%d%%", min(100, n))
		}
		return edit("nodes", b.Nodes, to, func(b *cluster.NodeBudget) { b.Nodes = to })
	})}
	if minutes := int64(b.Duration / time.Minute); b.Schedule != "" {
		out = append(out, inSteps(p.Name, minutes, -1, minutes-1, func(n int64) Edit {
			to := time.Duration(n) * time.Minute
			return edit("duration", b.Duration.String(), to.String(), func(b *cluster.NodeBudget) { b.Duration = to })
		}))
	}
	return out
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
