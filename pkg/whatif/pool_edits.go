package whatif

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// Paths in a NodePool.
const (
	atRequirements = "spec.template.spec.requirements"
	atTaints       = "spec.template.spec.taints"
	atLabels       = "spec.template.metadata.labels"
	atLimits       = "spec.limits"
	atAnnotations  = "metadata.annotations"
)

// mostSteps bounds how far a limit is raised, in steps of its resource. Half of it and double find the same by as many
// questions where fewer steps will do: the search gallops from the first step on.
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
	inPool := func(s *cluster.Snapshot) { change(&s.Pools[p.at]) }
	return target{"NodePool", "", p.Name}.edit(at, from, to, inPool, as...)
}

// poolFamilies are all edits of NodePools that could let them make a node for the pod.
func poolFamilies(s cluster.Snapshot, forPod cluster.Pod) (out []family) {
	for i, p := range s.Pools {
		if !p.Deleting && !p.Static {
			out = append(out, pool{p, i}.families(forPod)...)
		}
	}
	for i := range out {
		out[i].launches = true
	}
	return out
}

// families are those of one NodePool.
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
	at := p.Disruption.SleepAt
	return append(out, single(p.Name, p.edit(pathOf(atAnnotations, v1.AnnotationHibernationSchedule), at, "never",
		func(p *cluster.Pool) { p.Disruption.SleepAt, p.Disruption.SleepFor = "", 0 }), at != ""))
}

// requirementFamilies widen a requirement: to one value more, to any value, to nothing; and lower its minValues.
func (p pool) requirementFamilies(r requirements.Requirement) []family {
	at := pathOf(atRequirements, "[key="+r.Key+"]")
	to := func(x ...requirements.Requirement) Edit {
		return p.edit(at, r.String(), requirements.NewSet(x...).String(),
			func(p *cluster.Pool) { p.Requirements = p.Requirements.Without(r.Key).And(x...) })
	}
	out := []family{p.minValuesFamily(r), single(p.Name, to())}
	if r.Operator() != requirements.Exists {
		all := requirements.Any(r.Key)
		all.MinValues = r.MinValues
		out = append([]family{widening(p.Name, r, to(all), to)}, out...)
	}
	return inPlace(p.Name+" "+at.String(), out...)
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
	change := func(key, to string, value ...string) {
		out = append(out, single(p.Name, p.edit(pathOf(atLabels, key), shown(p.Labels, key), to,
			func(p *cluster.Pool) { p.Labels = withKey(p.Labels, key, value...) })))
	}
	wanted := append(requirements.FromLabels(forPod.NodeSelector).All(), slices.Concat(forPod.NodeAffinity...)...)
	seen := map[string]bool{}
	for _, r := range wanted {
		v, one := r.Single()
		_, required := p.Requirements.Get(r.Key)
		was, has := p.Labels[r.Key]
		if id := r.Key + "=" + v; !required && one && (!has || was != v) && !seen[id] {
			seen[id] = true
			change(r.Key, cmp.Or(v, noValue), v)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(p.Labels)) {
		change(key, "")
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
	was := p.Limits.Get(name)
	step, _ := stepsOf(name)
	return inSteps(p.Name, was/step*step, step, mostSteps, func(to int64) Edit {
		return p.edit(at, text(was), text(to), func(p *cluster.Pool) { p.Limits = p.Limits.With(name, to) })
	})
}

// setting is a change of a setting of the stack.
func setting(name, from, to string, change func(*cluster.Settings)) Edit {
	return target{KindSetting, "", name}.edit(pathOf("value"), from, to,
		func(s *cluster.Snapshot) { change(&s.Rules) }, nil)
}

// settingFamilies are edits of settings that bound what is launched.
func settingFamilies(r cluster.Settings) (out []family) {
	raised := func(name string, was int64, unit float64, set func(*cluster.Ceiling, int64)) {
		steps := mostSteps * min(was, 1) // none where nothing is bounded
		out = append(out, inSteps("", was, 1, steps, func(to int64) Edit {
			return setting(name, formatDecimal(float64(was)/unit), formatDecimal(float64(to)/unit),
				func(r *cluster.Settings) { set(&r.Ceiling, to) })
		}))
	}
	raised("maxNodes", int64(r.Ceiling.Nodes), 1, func(c *cluster.Ceiling, n int64) { c.Nodes = int(n) })
	raised("maxNodesPerMinute", int64(r.Ceiling.NodesPerMinute), 1,
		func(c *cluster.Ceiling, n int64) { c.NodesPerMinute = int(n) })
	const cent = 10_000 // millionths of a USD
	raised("maxUSDPerHour", r.Ceiling.MillionthsUSD/cent, 100,
		func(c *cluster.Ceiling, n int64) { c.MillionthsUSD = n * cent })
	return append(out, single("", setting("minValuesPolicy", "Strict", "BestEffort",
		func(r *cluster.Settings) { r.RelaxMinValues = true }), !r.RelaxMinValues))
}

// refusalFamilies lift what EC2 refuses for a reason that its owner can mend: quotas and addresses.
func refusalFamilies(s cluster.Snapshot) (out []family) {
	codes := lists.Set(s.SoldOut, func(m instancetypes.UnavailableOffering) string { return m.Why })
	for _, code := range slices.Sorted(maps.Keys(codes)) {
		is := func(m instancetypes.UnavailableOffering) bool { return m.Why == code }
		out = append(out, single("", target{KindEC2, "", code}.edit(pathOf("refusals"),
			fmt.Sprint(lists.Count(s.SoldOut, is)), "0", func(s *cluster.Snapshot) {
				s.SoldOut = slices.DeleteFunc(slices.Clone(s.SoldOut), is)
			}, nil), awserrors.IsQuota(code)))
	}
	return out
}

// classFamilies have an EC2NodeClass ready that is not, in each zone where it has no subnet at all.
func classFamilies(s cluster.Snapshot) (out []family) {
	for i, c := range s.Classes {
		if c.Ready || c.Unseen {
			continue
		}
		out = append(out, single("", target{"EC2NodeClass", "", c.Name}.edit(pathOf("status.conditions", "[type=Ready]"),
			cmp.Or(c.Message, "False"), "True", func(s *cluster.Snapshot) {
				if s.Classes[i].Ready = true; len(c.ZoneIDs) == 0 {
					s.Classes[i].ZoneIDs = s.Catalog.Zones
				}
				for j := range s.Pools {
					if p := &s.Pools[j]; p.Class == c.Name && strings.Contains(p.Message, "EC2NodeClass "+c.Name) {
						p.Ready = true
					}
				}
			}, nil)))
	}
	return out
}
