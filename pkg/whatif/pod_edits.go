package whatif

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Paths in a pod.
const (
	atSelector     = "spec.nodeSelector"
	atNodeAffinity = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atAffinity     = "spec.affinity.podAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atAntiAffinity = "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution"
	atSpread       = "spec.topologySpreadConstraints"
)

// Bounds of the edits of a pod.
const (
	// largestCut is the part of a request that may be cut: what asks for twice as much as there is is not a little too
	// large.
	largestCut = 2
	// mostSkew is how far maxSkew is raised before the constraint is dropped.
	mostSkew = 8
)

// pods are those that one object makes.
type pods struct {
	cluster.Pod                 // one of them
	names       map[string]bool // of all, in its namespace
}

func (p pods) has(x *cluster.Pod) bool {
	return x.Namespace == p.Namespace && p.names[x.Name] && !x.Virtual
}

// edit is a change of what makes the pods.
func (p pods) edit(field, from, to string, change func(*cluster.Pod), ops ...op) Edit {
	return Edit{Kind: "Pod", Namespace: p.Namespace, Name: p.Name, Field: field, From: from, To: to, ops: ops,
		make: func(s *cluster.Snapshot) {
			for i := range s.Pods {
				if p.has(&s.Pods[i]) {
					change(&s.Pods[i])
				}
			}
		}}
}

// families are all edits of the pods.
func (p pods) families(s cluster.Snapshot) (out []family) {
	out = append(out, p.selectorFamilies()...)
	out = append(out, p.nodeAffinityFamilies()...)
	out = append(out, p.tolerationFamilies(s)...)
	out = append(out, p.requestFamilies()...)
	out = append(out, p.spreadFamilies()...)
	out = append(out, p.termFamilies()...)
	for i, port := range slices.Backward(p.HostPorts) {
		out = append(out, single("", p.edit(fmt.Sprintf("spec.containers[*].ports[hostPort=%d]", port.Port), port.Protocol, "",
			func(p *cluster.Pod) { p.HostPorts = without(p.HostPorts, i) })))
	}
	if len(p.VolumeZones) > 0 {
		out = append(out, p.volumeFamily())
	}
	return out
}

// without is the list without its element i.
func without[T any](list []T, i int) []T { return slices.Delete(slices.Clone(list), i, i+1) }

// with is the list with another element i.
func with[T any](list []T, i int, v T) []T {
	list = slices.Clone(list)
	list[i] = v
	return list
}

func (p pods) selectorFamilies() (out []family) {
	for _, key := range slices.Sorted(maps.Keys(p.NodeSelector)) {
		was := p.NodeSelector[key]
		set := func(value string) func(*cluster.Pod) {
			return func(p *cluster.Pod) {
				p.NodeSelector = maps.Clone(p.NodeSelector)
				if p.NodeSelector[key] = value; value == "" {
					delete(p.NodeSelector, key)
				}
			}
		}
		f := single("", p.edit(atSelector+"."+key, was, "", set(""), removeAt(atSelector, key)))
		f.narrow = func(l landing) (out []Edit) {
			if v := l.label(key); v != "" {
				out = append(out, p.edit(atSelector+"."+key, was, v, set(v), replaceAt(v, atSelector, key)))
			}
			return out
		}
		out = append(out, f)
	}
	return out
}

// nodeAffinityFamilies widen one requirement of one term; where a term has no other, all terms are dropped: one without
// requirements selects no node.
func (p pods) nodeAffinityFamilies() (out []family) {
	whole := false
	for i, term := range slices.Backward(p.NodeAffinity) {
		if len(term) < 2 {
			whole = true
		}
		for j, r := range slices.Backward(term) {
			field := fmt.Sprintf("%s.nodeSelectorTerms[%d].matchExpressions[key=%s]", atNodeAffinity, i, r.Key)
			edit := func(to string, change func([]requirements.Requirement) []requirements.Requirement) Edit {
				return p.edit(field, r.String(), to, func(p *cluster.Pod) {
					p.NodeAffinity = with(p.NodeAffinity, i, change(p.NodeAffinity[i]))
				})
			}
			widen := func(l landing) (out []Edit) {
				if x, ok := widened(r, l.label(r.Key)); ok {
					out = append(out, edit(x.String(), func(t []requirements.Requirement) []requirements.Requirement {
						return with(t, j, x)
					}))
				}
				return out
			}
			f := single("", edit("", func(t []requirements.Requirement) []requirements.Requirement {
				return without(t, j)
			}))
			if all := requirements.Any(r.Key); len(term) < 2 {
				f = single("", edit(all.String(), func(t []requirements.Requirement) []requirements.Requirement {
					return with(t, j, all)
				}))
			}
			f.narrow = widen
			out = append(out, f)
		}
	}
	if whole || len(p.NodeAffinity) > 1 {
		out = append(out, single("", p.edit(atNodeAffinity, fmt.Sprintf("%d terms", len(p.NodeAffinity)), "",
			func(p *cluster.Pod) { p.NodeAffinity = nil }, removeAt(atNodeAffinity))))
	}
	for i := range out {
		out[i].place = atNodeAffinity
	}
	return out
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
	if n, ok := wholeNumber(value); ok && r.Min != nil && n < *r.Min {
		r.Min = &n
	} else if ok && r.Max != nil && n > *r.Max {
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
	for _, h := range s.StateNodes() {
		if h.Claim == nil { // those of others are of NodePools, or come and go
			taints = append(taints, slices.DeleteFunc(slices.Clone(h.Taints()),
				func(t cluster.Taint) bool { return strings.HasPrefix(t.Key, "node.kubernetes.io/") })...)
		}
	}
	seen := map[cluster.Taint]bool{}
	for _, t := range cluster.Untolerated(taints, p.Tolerations) {
		if seen[t] {
			continue
		}
		seen[t] = true
		add := cluster.Toleration{Key: t.Key, Operator: "Equal", Value: t.Value, Effect: t.Effect}
		value := map[string]any{"key": t.Key, "operator": "Equal", "value": t.Value, "effect": t.Effect}
		if t.Value == "" {
			add.Operator = "Exists"
			value = map[string]any{"key": t.Key, "operator": "Exists", "effect": t.Effect}
		}
		out = append(out, single("", p.edit("spec.tolerations", "", t.String(),
			func(p *cluster.Pod) { p.Tolerations = append(slices.Clone(p.Tolerations), add) },
			addTo(value, "spec.tolerations"))))
	}
	return out
}

// stepOf is in what steps a resource is raised or cut.
func stepOf(resource string, cut bool) int64 {
	switch {
	case resource == resources.CPU && cut:
		return 10
	case resource == resources.CPU:
		return 1000
	case (resource == resources.Memory || resource == resources.Ephemeral) && cut:
		return resources.MiB
	case resource == resources.Memory || resource == resources.Ephemeral:
		return 1024 * resources.MiB
	case resource == cluster.LimitUSD:
		return 10_000
	}
	return 1
}

// requestFamilies cut one request.
func (p pods) requestFamilies() (out []family) {
	for _, name := range p.Need.Names() {
		if name == resources.Pods {
			continue
		}
		was, step := p.Need.Get(name), stepOf(name, true)
		out = append(out, family{count: int(was / largestCut / step), at: func(i int) Edit {
			to := was - int64(i+1)*step
			e := p.edit("spec.containers[*].resources.requests."+name, resources.Format(name, was),
				resources.Format(name, to), func(p *cluster.Pod) { p.Need = p.Need.With(name, to) })
			e.ops = []op{{do: cutRequest, path: []string{name}, value: was - to}}
			return e
		}})
	}
	return out
}

func (p pods) spreadFamilies() (out []family) {
	for i, x := range p.Spread {
		if x.Soft {
			continue
		}
		at := fmt.Sprintf("%s[%d]", atSpread, i)
		set := func(field, from, to string, value any, change func(*cluster.Spread)) Edit {
			return p.edit(at+"."+field, from, to, func(p *cluster.Pod) {
				p.Spread = slices.Clone(p.Spread)
				change(&p.Spread[i])
			}, replaceAt(value, atSpread, fmt.Sprint(i), field))
		}
		out = append(out, family{count: mostSkew + 1, at: func(n int) Edit {
			if n == mostSkew {
				return set("whenUnsatisfiable", "DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway",
					func(x *cluster.Spread) { x.Soft, x.MinDomains = true, 0 })
			}
			to := x.MaxSkew + int32(n) + 1
			return set("maxSkew", fmt.Sprint(x.MaxSkew), fmt.Sprint(to), int64(to),
				func(x *cluster.Spread) { x.MaxSkew = to })
		}})
		if !x.HonorTaints {
			out = append(out, single("", set("nodeTaintsPolicy", "Ignore", "Honor", "Honor",
				func(x *cluster.Spread) { x.HonorTaints = true })))
		}
		out = append(out, family{count: int(max(0, x.MinDomains-1)), at: func(n int) Edit {
			to := x.MinDomains - int32(n) - 1
			return set("minDomains", fmt.Sprint(x.MinDomains), fmt.Sprint(to), int64(to),
				func(x *cluster.Spread) { x.MinDomains = to })
		}})
	}
	return out
}

// termFamilies drop one term of pod affinity or anti-affinity.
func (p pods) termFamilies() (out []family) {
	for i, t := range slices.Backward(p.Affinity) {
		out = append(out, single("", p.edit(fmt.Sprintf("%s[%d]", atAffinity, i), t.Key, "",
			func(p *cluster.Pod) { p.Affinity = without(p.Affinity, i) }, removeAt(atAffinity, fmt.Sprint(i)))))
	}
	for i, t := range slices.Backward(p.AntiAffinity) {
		out = append(out, single("", p.edit(fmt.Sprintf("%s[%d]", atAntiAffinity, i), t.Key, "",
			func(p *cluster.Pod) { p.AntiAffinity = without(p.AntiAffinity, i) },
			removeAt(atAntiAffinity, fmt.Sprint(i)))))
	}
	return out
}

// volumeFamily has the pod's volumes elsewhere: anywhere, or in the zone that it would come to.
func (p pods) volumeFamily() family {
	var was requirements.Set
	for _, r := range p.VolumeZones[0] {
		was = was.And(r)
	}
	f := single("", p.edit("volumes' node affinity", was.String(), "any",
		func(p *cluster.Pod) { p.VolumeZones = nil }))
	f.narrow = func(l landing) (out []Edit) {
		for _, r := range was.All() {
			if v := l.label(r.Key); v != "" && !r.Has(v) {
				to := requirements.Of(r.Key, v)
				out = append(out, p.edit("volumes' node affinity", r.String(), to.String(), func(p *cluster.Pod) {
					p.VolumeZones = [][]requirements.Requirement{was.Without(r.Key).And(to).All()}
				}))
			}
		}
		return out
	}
	return f
}
