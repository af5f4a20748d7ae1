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
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Paths in a pod, and in a NodePool.
const (
	atSelector     = "spec.nodeSelector"
	atNodeAffinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atAffinity     = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atAntiAffinity = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atSpread       = "spec.topologySpreadConstraints"

	atRequirements = "spec.template.spec.requirements"
	atTaints       = "spec.template.spec.taints"
	atLabels       = "spec.template.metadata.labels"
	atLimits       = "spec.limits"
	atDisruption   = "spec.disruption"
	atAnnotations  = "metadata.annotations"
)

// How far maxSkew, the nodes of a budget and the hours in which a move pays are raised. Half and double answer the same
// about 600 random nodes that stay.
const mostSkew, mostNodes, mostHours = 8, 100, 24

// pods stands for the pods that one object makes.
type pods struct {
	cluster.Pod                 // one of them
	names       map[string]bool // of all, in its namespace
}

func (p pods) has(x *cluster.Pod) bool {
	return x.Namespace == p.Namespace && p.names[x.Name] && !x.Virtual
}

// edit is a change of what makes the pods.
func (p pods) edit(at path, from, to string, change func(*cluster.Pod), as ...any) Edit {
	return target{"Pod", p.Namespace, p.Name}.edit(at, from, to, func(s *cluster.Snapshot) {
		for i := range s.Pods {
			if p.has(&s.Pods[i]) {
				change(&s.Pods[i])
			}
		}
	}, as...)
}

// families are all edits of the pods.
func (p pods) families(s cluster.Snapshot) []family {
	out := slices.Concat(p.selectorFamilies(), p.nodeAffinityFamilies(), p.tolerationFamilies(s), p.requestFamilies(),
		p.spreadFamilies(), p.termFamilies())
	for i, port := range slices.Backward(p.HostPorts) {
		at := pathOf("spec.containers[*].ports", fmt.Sprintf("[hostPort=%d]", port.Port))
		out = append(out, single("", p.edit(at, port.Protocol, "",
			func(p *cluster.Pod) { p.HostPorts = without(p.HostPorts, i) }, nil)))
	}
	if len(p.VolumeZones) > 0 {
		out = append(out, p.volumeFamily())
	}
	return out
}

func (p pods) selectorFamilies() (out []family) {
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		to := func(v ...string) Edit {
			was, is := shown(p.NodeSelector, key), strings.Join(v, "")
			return p.edit(pathOf(atSelector, key), was, is, func(p *cluster.Pod) {
				p.NodeSelector = withKey(p.NodeSelector, key, v...)
				p.Unmodelled = slices.DeleteFunc(slices.Clone(p.Unmodelled), func(why string) bool {
					return len(v) == 0 && strings.HasPrefix(why, cluster.SelectorRefused) && strings.Contains(why, key)
				})
			})
		}
		f := single("", to())
		f.narrow = func(l landing) (Edit, bool) { return to(l(key)), l(key) != "" }
		out = append(out, f)
	}
	return out
}

// nodeAffinityFamilies widen one requirement of one term, and drop all terms: one without requirements selects no node.
func (p pods) nodeAffinityFamilies() (out []family) {
	for i, term := range slices.Backward(p.NodeAffinity) {
		for j, r := range slices.Backward(term) {
			at := pathOf(atNodeAffinity, "nodeSelectorTerms", elementAt(i), "matchExpressions", "[key="+r.Key+"]")
			to := func(x ...requirements.Requirement) Edit {
				return p.edit(at, r.String(), requirements.NewSet(x...).String(), func(p *cluster.Pod) {
					p.NodeAffinity = slices.Clone(p.NodeAffinity)
					p.NodeAffinity[i] = slices.Replace(slices.Clone(p.NodeAffinity[i]), j, j+1, x...)
				}, nil)
			}
			all := to()
			if len(term) == 1 {
				all = to(requirements.Any(r.Key))
			}
			out = append(out, widening("", r, all, to))
		}
	}
	refused := func(why string) bool { return strings.HasPrefix(why, cluster.AffinityRefused) }
	out = append(out, single("", p.edit(pathOf(atNodeAffinity), "all terms", "", func(p *cluster.Pod) {
		p.NodeAffinity, p.Unmodelled = nil, slices.DeleteFunc(slices.Clone(p.Unmodelled), refused)
	}), len(p.NodeAffinity) > 0 || slices.ContainsFunc(p.Unmodelled, refused)))
	return inPlace(atNodeAffinity, out...)
}

// widening is a family that does away with a requirement or, where that will do, has it allow what the pod comes to.
func widening(pool string, r requirements.Requirement, all Edit, to func(...requirements.Requirement) Edit) family {
	f := single(pool, all)
	f.narrow = func(l landing) (Edit, bool) {
		x, ok := widened(r, l(r.Key))
		return to(x), ok
	}
	return f
}

// widened is the requirement that allows the value too.
func widened(r requirements.Requirement, value string) (requirements.Requirement, bool) {
	if value == "" || r.Has(value) {
		return r, false
	}
	if !r.Not {
		r.Values = slices.Sorted(slices.Values(append(slices.Clone(r.Values), value)))
		r.Present = false
		return r, true
	}
	r.Values = slices.DeleteFunc(slices.Clone(r.Values), func(v string) bool { return v == value })
	if n, err := strconv.ParseInt(value, 10, 64); err == nil && r.Min != nil && n < *r.Min {
		r.Min = &n
	} else if err == nil && r.Max != nil && n > *r.Max {
		r.Max = &n
	}
	return r, r.Has(value)
}

// tolerationFamilies tolerate one taint of a NodePool, or of a node that people gave it.
func (p pods) tolerationFamilies(s cluster.Snapshot) (out []family) {
	var taints []cluster.Taint
	for _, pool := range s.Pools {
		taints = append(taints, pool.Taints...)
	}
	for _, node := range s.StateNodes() {
		if node.Claim == nil { // those of others are of NodePools, or come and go
			taints = append(taints, slices.DeleteFunc(slices.Clone(node.Taints()),
				func(t cluster.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })...)
		}
	}
	taints = cluster.Untolerated(taints, p.Tolerations)
	for i, t := range taints {
		x := cluster.Toleration{Key: t.Key, Operator: "Equal", Value: t.Value, Effect: t.Effect}
		out = append(out, single("", p.edit(pathOf("spec.tolerations"), "", t.String(),
			func(p *cluster.Pod) { p.Tolerations = append(slices.Clone(p.Tolerations), x) }, nil),
			!slices.Contains(taints[:i], t)))
	}
	return out
}

// stepsOf are the steps in which a resource is raised and cut.
func stepsOf(resource string) (raised, cut int64) {
	switch resource {
	case resources.CPU:
		return 1000, 10
	case resources.Memory, resources.Ephemeral:
		return 1024 * resources.MiB, resources.MiB
	case cluster.LimitUSD:
		return 10_000, 1
	}
	return 1, 1
}

// requestFamilies cut one request, and do without one of an extended resource. What a ResourceClaim asks for stands in
// no field of the pod, nor what its RuntimeClass adds.
func (p pods) requestFamilies() (out []family) {
	bounds := cmp.Or(p.NeedBounds, &cluster.NeedBounds{})
	for _, name := range p.Need.Names() {
		added, least := bounds.Overhead.Get(name), bounds.Containers.Get(name)
		was := p.Need.Get(name) - added // 1 of pods, which is not cut
		if cluster.IsClaimed(name) || was <= least {
			continue
		}
		_, step := stepsOf(name)
		count, list := (was-max(1, least))/step, "requests"
		if strings.Contains(name, "/") { // of devices, as of huge pages, the limits, which are the same
			count, list = was, "limits"
		} else if strings.HasPrefix(name, "hugepages-") { // whole pages
			step, count, list = was, 1-min(1, least), "limits"
		}
		out = append(out, inSteps("", (was+step-1)/step*step, -step, count, func(to int64) Edit {
			return p.edit(pathOf("spec.containers[*].resources", list, name), resources.Format(name, was),
				resources.Format(name, to), func(p *cluster.Pod) { p.Need = p.Need.With(name, to+added) })
		}))
	}
	return out
}

func (p pods) spreadFamilies() (out []family) {
	for i, x := range p.Spread {
		if x.Soft {
			continue
		}
		prefers := slices.ContainsFunc(p.Spread, func(y cluster.Spread) bool { return y.Soft && y.Key == x.Key })
		set := func(name string, from, to any, change func(*cluster.Spread)) Edit {
			return p.edit(pathOf(atSpread, elementAt(i), name), fmt.Sprint(from), fmt.Sprint(to), func(p *cluster.Pod) {
				p.Spread = slices.Clone(p.Spread)
				change(&p.Spread[i])
			})
		}
		out = append(out, inPlace(pathOf(atSpread, elementAt(i)).String(),
			inSteps("", int64(x.MaxSkew), 1, mostSkew, func(to int64) Edit {
				return set("maxSkew", x.MaxSkew, to, func(x *cluster.Spread) { x.MaxSkew = int32(to) })
			}), // no constraint has minDomains that is only preferred, and only one of a key is
			single("", set("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway",
				func(x *cluster.Spread) { x.Soft = true }), x.MinDomains == 0, !prefers))...)
		out = append(out, inSteps("", int64(x.MinDomains), -1, int64(x.MinDomains)-1, func(to int64) Edit {
			return set("minDomains", x.MinDomains, to, func(x *cluster.Spread) { x.MinDomains = int32(to) })
		}), single("", set("nodeTaintsPolicy", "Ignore", "Honor",
			func(x *cluster.Spread) { x.HonorTaints = true }), !x.HonorTaints))
	}
	return out
}

// termFamilies drop one term of pod affinity or anti-affinity.
func (p pods) termFamilies() (out []family) {
	drop := func(at string, i int, key string, change func(*cluster.Pod), when ...bool) {
		out = append(out, single("", p.edit(pathOf(at, elementAt(i)), key, "", change), when...))
	}
	for i, t := range slices.Backward(p.Affinity) {
		own := t.SharedClaim() == "" // else it stands in no field of the pod
		drop(atAffinity, i, t.Key, func(p *cluster.Pod) { p.Affinity = without(p.Affinity, i) }, own)
	}
	for i, t := range slices.Backward(p.AntiAffinity) {
		drop(atAntiAffinity, i, t.Key, func(p *cluster.Pod) { p.AntiAffinity = without(p.AntiAffinity, i) })
	}
	return out
}

// volumeFamily has the pod's volumes elsewhere: anywhere, or in the zone that it would come to.
func (p pods) volumeFamily() family {
	at := pathOf("volumes' node affinity")
	was := requirements.NewSet(p.VolumeZones[0]...)
	f := single("", p.edit(at, was.String(), "any", func(p *cluster.Pod) { p.VolumeZones = nil }, nil))
	f.narrow = func(l landing) (Edit, bool) {
		for _, r := range was.All() {
			if v := l(r.Key); v != "" && !r.Has(v) {
				to := requirements.Of(r.Key, v)
				return p.edit(at, r.String(), to.String(), func(p *cluster.Pod) {
					p.VolumeZones = [][]requirements.Requirement{was.Without(r.Key).And(to).All()}
				}, nil), true
			}
		}
		return Edit{}, false
	}
	return f
}

// mostSteps bounds how far a limit is raised, in steps of its resource. Half of it and double find the same by as many
// questions where fewer steps will do: the search gallops from the first step on.
const mostSteps = 1 << 16

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

// families returns the families of edits of one NodePool.
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

// settingFamilies are edits of settings that bound what is launched.
func settingFamilies(settings cluster.Settings) (out []family) {
	raised := func(name string, was int64, unit float64, set func(*cluster.Ceiling, int64)) {
		out = append(out, inSteps("", was, 1, mostSteps*min(was, 1), func(to int64) Edit {
			return setting(name, formatDecimal(float64(was)/unit), formatDecimal(float64(to)/unit),
				func(settings *cluster.Settings) { set(&settings.Ceiling, to) })
		}))
	}
	raised("maxNodes", int64(settings.Ceiling.Nodes), 1, func(c *cluster.Ceiling, n int64) { c.Nodes = int(n) })
	raised("maxNodesPerMinute", int64(settings.Ceiling.NodesPerMinute), 1,
		func(c *cluster.Ceiling, n int64) { c.NodesPerMinute = int(n) })
	const cent = 10_000 // millionths of a USD
	raised("maxUSDPerHour", settings.Ceiling.MillionthsUSD/cent, 100,
		func(c *cluster.Ceiling, n int64) { c.MillionthsUSD = n * cent })
	return append(out, single("", setting("minValuesPolicy", "Strict", "BestEffort",
		func(settings *cluster.Settings) { settings.RelaxMinValues = true }), !settings.RelaxMinValues))
}
