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

// formatDecimal is the number as people write it.
func formatDecimal(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// pool is a NodePool of the snapshot.
type pool struct {
	cluster.Pool
	at int
}

func (p pool) edit(at path, from, to string, change func(*cluster.Pool), as ...any) Edit {
	e := target{"NodePool", "", p.Name}.edit(at, from, to, as...)
	e.make = func(s *cluster.Snapshot) { change(&s.Pools[p.at]) }
	return e
}

// families are all edits of the NodePool that could let it make a node for the pod.
func (p pool) families(forPod cluster.Pod) (out []family) {
	for _, r := range p.Requirements.All() {
		out = append(out, p.requirementFamilies(r)...)
	}
	for i, t := range slices.Backward(p.Taints) {
		out = append(out, single(p.Name, p.edit(pathOf(atTaints), t.String(), "",
			func(p *cluster.Pool) { p.Taints = without(p.Taints, i) }, nil)))
	}
	out = append(out, p.labelFamilies(forPod)...)
	for _, name := range p.Limited {
		out = append(out, p.limitFamily(name))
	}
	if at := p.Disruption.SleepAt; at != "" {
		out = append(out, single(p.Name, p.edit(pathOf(atAnnotations, v1.AnnotationHibernationSchedule), at, "never",
			func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "", 0 })))
	}
	return out
}

// requirementFamilies widen a requirement: to one value more, to any value, to nothing; and lower its minValues.
func (p pool) requirementFamilies(r requirements.Requirement) []family {
	at := pathOf(atRequirements, "[key="+r.Key+"]")
	to := func(x requirements.Requirement) Edit {
		return p.edit(at, r.String(), x.String(),
			func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key).And(x) })
	}
	out := []family{p.minValuesFamily(r), single(p.Name, p.edit(at, r.String(), "",
		func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key) }))}
	if r.Operator() != requirements.Exists {
		all := requirements.Any(r.Key)
		all.MinValues = r.MinValues
		out = append([]family{widening(p.Name, r, to(all), to)}, out...)
	}
	for i := range out {
		out[i].place = p.Name + " " + at.String()
	}
	return out
}

// minValuesFamily lowers the minValues of a requirement.
func (p pool) minValuesFamily(r requirements.Requirement) family {
	return inSteps(p.Name, int64(r.MinValues), -1, int64(r.MinValues), func(to int64) Edit {
		x, shown := r, "none"
		if x.MinValues = int(to); to > 0 {
			shown = fmt.Sprint(to)
		}
		return p.edit(pathOf(atRequirements, "[key="+r.Key+"]", "minValues"), fmt.Sprint(r.MinValues), shown,
			func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key).And(x) })
	})
}

// labelFamilies give the pool's nodes a label that the pod wants, or take one from them.
func (p pool) labelFamilies(forPod cluster.Pod) (out []family) {
	to := func(key, value string) {
		out = append(out, single(p.Name, p.edit(pathOf(atLabels, key), p.Labels[key], value,
			func(p *cluster.Pool) { p.Labels = withKey(p.Labels, key, value) })))
	}
	wanted := requirements.FromLabels(forPod.NodeSelector).All()
	for _, term := range forPod.NodeAffinity {
		wanted = append(slices.Clone(wanted), term...)
	}
	seen := map[string]bool{}
	for _, r := range wanted {
		v, one := r.Single()
		if _, required := p.Requirements.Get(r.Key); !required && one && p.Labels[r.Key] != v && !seen[r.Key+"="+v] {
			seen[r.Key+"="+v] = true
			to(r.Key, v)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		to(key, "")
	}
	return out
}

// limitFamily raises a limit.
func (p pool) limitFamily(name string) family {
	at, text := pathOf(atLimits, name), func(n int64) string { return resources.Format(name, n) }
	if name == cluster.LimitUSD {
		at = pathOf(atAnnotations, v1.AnnotationLimitUSD)
		text = func(n int64) string { return formatDecimal(float64(n) / 1e6) }
	}
	was, step := p.Limits.Get(name), stepOf(name, false)
	return inSteps(p.Name, was/step*step, step, mostSteps, func(to int64) Edit {
		return p.edit(at, text(was), text(to), func(p *cluster.Pool) { p.Limits = p.Limits.With(name, to) })
	})
}
