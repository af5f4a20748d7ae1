package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
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
	for i, n := range s.Nodes {
		if n.Name == h.Name() && n.Annotations[v1.AnnotationDoNotDisrupt] != "" {
			was := n.Annotations[v1.AnnotationDoNotDisrupt]
			out = append(out, single("", Edit{Kind: "Node", Name: n.Name,
				Field: atAnnotations + "." + v1.AnnotationDoNotDisrupt, From: was,
				ops: []op{removeAt(atAnnotations, v1.AnnotationDoNotDisrupt)},
				make: func(s *cluster.Snapshot) {
					s.Nodes[i].Annotations = maps.Clone(s.Nodes[i].Annotations)
					delete(s.Nodes[i].Annotations, v1.AnnotationDoNotDisrupt)
				}}))
		}
	}
	for _, p := range on {
		if p.DoNotDisrupt != "" {
			out = append(out, single("", p.edit(atAnnotations+"."+v1.AnnotationDoNotDisrupt, p.DoNotDisrupt, "",
				func(p *cluster.Pod) { p.DoNotDisrupt = "" }, removeAt(atAnnotations, v1.AnnotationDoNotDisrupt))))
		}
	}
	for i, b := range s.Budgets {
		if count := selected(b, on); count > 0 {
			out = append(out, family{count: count, at: func(n int) Edit { return allowMore(b, i, n+1) }})
		}
	}
	return out
}

// selected is how many of the pods the budget is about.
func selected(b cluster.Budget, on []pods) (n int) {
	for _, p := range on {
		if p.Namespace == b.Namespace && b.Selector.Matches(p.Labels) {
			n += len(p.names)
		}
	}
	return n
}

// allowMore lets budget i allow more disruptions.
func allowMore(b cluster.Budget, i, more int) Edit {
	to := b.DisruptionsAllowed + int32(more)
	return Edit{Kind: "PodDisruptionBudget", Namespace: b.Namespace, Name: b.Name, Field: "allowed disruptions",
		From: fmt.Sprint(b.DisruptionsAllowed), To: fmt.Sprint(to),
		ops: []op{{do: allowDisruptions, value: int64(more)}},
		make: func(s *cluster.Snapshot) {
			s.Budgets[i].DisruptionsAllowed, s.Budgets[i].FullyBlocking = to, false
		}}
}

// disruptionEdit changes what the pool says about disruption.
func (p pool) disruptionEdit(field, from, to string, change func(*cluster.Disruption), ops ...op) Edit {
	return p.edit(field, from, to, func(p *cluster.Pool) { change(&p.Disruption) }, ops...)
}

// disruptionFamilies are all edits of what the pool says about disruption.
func (p pool) disruptionFamilies() (out []family) {
	d := p.Disruption
	at := func(field string) string { return atDisruption + "." + field }
	if all := string(v1.ConsolidationWhenEmptyOrUnderutilized); d.Policy != all {
		out = append(out, single(p.Name, p.disruptionEdit(at("consolidationPolicy"), d.Policy, all,
			func(d *cluster.Disruption) { d.Policy = all }, replaceAt(all, at("consolidationPolicy")))))
	}
	if d.Never {
		out = append(out, single(p.Name, p.disruptionEdit(at("consolidateAfter"), "Never", "0s",
			func(d *cluster.Disruption) { d.Never, d.After = false, 0 }, replaceAt("0s", at("consolidateAfter")))))
	} else {
		out = append(out, p.afterFamily())
	}
	for i, b := range d.Budgets {
		out = append(out, p.budgetFamilies(i, b)...)
	}
	if d.ReportOnly && d.Message == "" {
		out = append(out, single(p.Name, p.disruptionEdit(atAnnotations+"."+v1.AnnotationDisruption, "report", "act",
			func(d *cluster.Disruption) { d.ReportOnly = false },
			replaceAt("act", atAnnotations, v1.AnnotationDisruption))))
	}
	out = append(out, p.lowered(v1.AnnotationMinSavingsUSD, d.SavesUSD, 1000,
		func(d *cluster.Disruption, n float64) { d.SavesUSD = n }),
		p.lowered(v1.AnnotationMinSavingsPercent, d.SavesPercent, 10,
			func(d *cluster.Disruption, n float64) { d.SavesPercent = n }))
	if yes := true; d.SpotToSpot == nil || !*d.SpotToSpot {
		out = append(out, single(p.Name, p.disruptionEdit(atAnnotations+"."+v1.AnnotationSpotToSpot, "", "true",
			func(d *cluster.Disruption) { d.SpotToSpot = &yes },
			replaceAt("true", atAnnotations, v1.AnnotationSpotToSpot))))
	}
	if p.Static {
		out = append(out, family{pool: p.Name, count: int(p.Replicas), at: func(i int) Edit {
			to := p.Replicas - int64(i) - 1
			return p.edit("spec.replicas", fmt.Sprint(p.Replicas), fmt.Sprint(to),
				func(p *cluster.Pool) { p.Replicas = to }, replaceAt(to, "spec.replicas"))
		}})
	}
	return out
}

// afterFamily shortens consolidateAfter: by minutes, a short one by seconds.
func (p pool) afterFamily() family {
	was, step := p.Disruption.After, time.Minute
	if was < 10*time.Minute {
		step = time.Second
	}
	count := int((was + step - 1) / step)
	return family{pool: p.Name, count: count, at: func(i int) Edit {
		to := time.Duration(count-1-i) * step
		return p.disruptionEdit(atDisruption+".consolidateAfter", was.String(), to.String(),
			func(d *cluster.Disruption) { d.After = to }, replaceAt(to.String(), atDisruption+".consolidateAfter"))
	}}
}

// lowered is a threshold of an annotation that is lowered, in so many steps for one.
func (p pool) lowered(key string, was, steps float64, set func(*cluster.Disruption, float64)) family {
	count := int(was*steps + 0.999)
	return family{pool: p.Name, count: count, at: func(i int) Edit {
		to := float64(count-1-i) / steps
		text := strconv.FormatFloat(to, 'f', -1, 64)
		return p.disruptionEdit(atAnnotations+"."+key, strconv.FormatFloat(was, 'f', -1, 64), text,
			func(d *cluster.Disruption) { set(d, to) }, replaceAt(text, atAnnotations, key))
	}}
}

// mostNodes is how far the nodes of a budget are raised before it is removed.
const mostNodes = 100

// budgetFamilies raise the nodes of a budget, or remove it.
func (p pool) budgetFamilies(i int, b cluster.NodeBudget) []family {
	field := fmt.Sprintf("%s.budgets[%d]", atDisruption, i)
	number, percent := strings.CutSuffix(b.Nodes, "%")
	was, _ := wholeNumber(number)
	out := []family{{pool: p.Name, count: mostNodes, at: func(n int) Edit {
		to := strconv.FormatInt(was+int64(n)+1, 10)
		if percent {
			to = strconv.FormatInt(min(100, was+int64(n)+1), 10) + "%"
		}
		return p.disruptionEdit(field+".nodes", b.Nodes, to, func(d *cluster.Disruption) {
			d.Budgets = slices.Clone(d.Budgets)
			d.Budgets[i].Nodes = to
		}, replaceAt(to, atDisruption, "budgets", fmt.Sprint(i), "nodes"))
	}}}
	if b.Schedule != "" {
		out = append(out, family{pool: p.Name, count: int(b.Duration / time.Minute), at: func(n int) Edit {
			to := b.Duration - time.Duration(n+1)*time.Minute
			return p.disruptionEdit(field+".duration", b.Duration.String(), to.String(), func(d *cluster.Disruption) {
				d.Budgets = slices.Clone(d.Budgets)
				d.Budgets[i].Duration = to
			}, replaceAt(to.String(), atDisruption, "budgets", fmt.Sprint(i), "duration"))
		}})
	}
	return out
}

// paybackFamily has moves pay within a longer time.
func paybackFamily(r cluster.Settings) family {
	const mostHours = 24
	was := max(1, int64(r.ConsolidationPayback/time.Hour))
	return family{count: int(mostHours - was), at: func(i int) Edit {
		to := time.Duration(was+int64(i)+1) * time.Hour
		return setting("consolidationPayback", (time.Duration(was) * time.Hour).String(), to.String(),
			func(r *cluster.Settings) { r.ConsolidationPayback = to })
	}}
}
