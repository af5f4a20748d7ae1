package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Paths in a NodePool.
const (
	atRequirements = "spec.template.spec.requirements"
	atTaints       = "spec.template.spec.taints"
	atLabels       = "spec.template.metadata.labels"
	atLimits       = "spec.limits"
	atAnnotations  = "metadata.annotations"
)

// mostSteps bounds how far a limit is raised, in steps of its resource.
const mostSteps = 1 << 16

func wholeNumber(text string) (int64, bool) {
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil
}

// pool is a NodePool of the snapshot.
type pool struct {
	cluster.Pool
	at int
}

func (p pool) edit(field, from, to string, change func(*cluster.Pool), ops ...op) Edit {
	return Edit{Kind: "NodePool", Name: p.Name, Field: field, From: from, To: to, ops: ops,
		make: func(s *cluster.Snapshot) { change(&s.Pools[p.at]) }}
}

// families are all edits of the NodePool that could let it make a node for the pod.
func (p pool) families(forPod cluster.Pod) (out []family) {
	for _, r := range p.Requirements.All() {
		out = append(out, p.requirementFamilies(r)...)
	}
	for i, t := range slices.Backward(p.Taints) {
		out = append(out, single(p.Name, p.edit(atTaints, t.String(), "",
			func(p *cluster.Pool) { p.Taints = without(p.Taints, i) },
			removeAt(atTaints, fmt.Sprintf("[key=%s,effect=%s]", t.Key, t.Effect)))))
	}
	out = append(out, p.labelFamilies(forPod)...)
	for _, name := range p.Limited {
		out = append(out, p.limitFamily(name))
	}
	if d := p.Disruption; d.SleepAt != "" {
		out = append(out, single(p.Name, p.edit(atAnnotations+"."+v1.AnnotationHibernationSchedule, d.SleepAt, "never",
			func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "", 0 },
			replaceAt("never", atAnnotations, v1.AnnotationHibernationSchedule))))
	}
	return out
}

// requirementFamilies widen a requirement: to one value more, to any value, to nothing; and lower its minValues.
func (p pool) requirementFamilies(r requirements.Requirement) (out []family) {
	field := fmt.Sprintf("%s[key=%s]", atRequirements, r.Key)
	to := func(x requirements.Requirement) Edit {
		return p.edit(field, r.String(), x.String(), func(p *cluster.Pool) {
			p.Requirements = p.Requirements.Without(r.Key).And(x)
		}, op{do: setRequirement, value: x})
	}
	if r.Operator() != requirements.Exists {
		all := requirements.Any(r.Key)
		all.MinValues = r.MinValues
		f := single(p.Name, to(all))
		f.narrow = func(l landing) (out []Edit) {
			if x, ok := widened(r, l.label(r.Key)); ok {
				out = append(out, to(x))
			}
			return out
		}
		out = append(out, f)
	}
	out = append(out, p.minValuesFamily(r), single(p.Name, p.edit(field, r.String(), "",
		func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key) },
		op{do: dropRequirement, path: []string{r.Key}})))
	for i := range out {
		out[i].place = p.Name + " " + field
	}
	return out
}

// minValuesFamily lowers the minValues of a requirement.
func (p pool) minValuesFamily(r requirements.Requirement) family {
	return family{pool: p.Name, count: r.MinValues, at: func(i int) Edit {
		x, shown := r, "none"
		if x.MinValues = r.MinValues - i - 1; x.MinValues > 0 {
			shown = fmt.Sprint(x.MinValues)
		}
		return p.edit(fmt.Sprintf("%s[key=%s].minValues", atRequirements, r.Key), fmt.Sprint(r.MinValues), shown,
			func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key).And(x) },
			op{do: setRequirement, value: x})
	}}
}

// labelFamilies give the pool's nodes a label that the pod wants, or take one from them.
func (p pool) labelFamilies(forPod cluster.Pod) (out []family) {
	wanted := requirements.FromLabels(forPod.NodeSelector).All()
	for _, term := range forPod.NodeAffinity {
		wanted = append(slices.Clone(wanted), term...)
	}
	seen := map[string]bool{}
	for _, r := range wanted {
		v, one := r.Single()
		if _, required := p.Requirements.Get(r.Key); required || !one || p.Labels[r.Key] == v || seen[r.Key+"="+v] {
			continue
		}
		seen[r.Key+"="+v] = true
		out = append(out, single(p.Name, p.labelEdit(r.Key, v, replaceAt(v, atLabels, r.Key))))
	}
	for _, k := range slices.Sorted(maps.Keys(p.Labels)) {
		out = append(out, single(p.Name, p.labelEdit(k, "", removeAt(atLabels, k))))
	}
	return out
}

// labelEdit gives the pool's nodes a label, or none of that key.
func (p pool) labelEdit(key, value string, how op) Edit {
	return p.edit(atLabels+"."+key, p.Labels[key], value, func(p *cluster.Pool) {
		labels := map[string]string{key: value}
		for k, v := range p.Labels {
			if k != key {
				labels[k] = v
			}
		}
		if p.Labels = labels; value == "" {
			delete(labels, key)
		}
	}, how)
}

// limitFamily raises a limit.
func (p pool) limitFamily(name string) family {
	was, step := p.Limits.Get(name), stepOf(name, false)
	return family{pool: p.Name, count: mostSteps, at: func(i int) Edit {
		to := (was/step + int64(i) + 1) * step
		set := func(p *cluster.Pool) { p.Limits = p.Limits.With(name, to) }
		if name == cluster.LimitUSD {
			usd := strconv.FormatFloat(float64(to)/1e6, 'f', -1, 64)
			return p.edit(atAnnotations+"."+v1.AnnotationLimitUSD,
				strconv.FormatFloat(float64(was)/1e6, 'f', -1, 64), usd, set,
				replaceAt(usd, atAnnotations, v1.AnnotationLimitUSD))
		}
		return p.edit(atLimits+"."+name, resources.Format(name, was), resources.Format(name, to), set,
			replaceAt(resources.Format(name, to), atLimits, name))
	}}
}
