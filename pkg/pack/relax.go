package pack

import (
	"cmp"
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/require"
)

// wish is a pod's constraints with some of its preferences taken as rules.
type wish struct {
	pod      cluster.Pod
	prefers  []cluster.WeightedAffinityTerm // lightest first, as all lists here
	avoids   []cluster.WeightedAffinityTerm
	nodes    []cluster.WeightedRequirements
	soft     []cluster.Spread
	bearsAll bool // taints with effect PreferNoSchedule no longer matter
}

// wishes lists a pod's constraints from the strictest to the one without preferences. Each step drops one preference in
// the order of spec core.md §2.9; its first step, the ORed terms of required node affinity, needs no relaxing here because
// all terms are tried at once.
func wishes(p cluster.Pod, ignore, anySoftTaint bool) []wish {
	w := wish{pod: p, bearsAll: !anySoftTaint}
	if ignore {
		w.bearsAll = true
		return []wish{w}
	}
	w.prefers, w.avoids = lightestFirst(p.Prefers), lightestFirst(p.Avoids)
	w.nodes = slices.Clone(p.NodePrefers)
	slices.SortStableFunc(w.nodes, func(a, b cluster.WeightedRequirements) int { return cmp.Compare(a.Weight, b.Weight) })
	for _, c := range p.Spread {
		if c.Soft {
			w.soft = append(w.soft, c)
		}
	}
	out := []wish{w}
	for {
		switch {
		case len(w.prefers) > 0:
			w.prefers = w.prefers[:len(w.prefers)-1]
		case len(w.avoids) > 0:
			w.avoids = w.avoids[:len(w.avoids)-1]
		case len(w.nodes) > 0:
			w.nodes = w.nodes[:len(w.nodes)-1]
		case len(w.soft) > 0:
			w.soft = w.soft[:len(w.soft)-1]
		case !w.bearsAll:
			w.bearsAll = true
		default:
			return out
		}
		out = append(out, w)
	}
}

func lightestFirst(terms []cluster.WeightedAffinityTerm) []cluster.WeightedAffinityTerm {
	out := slices.Clone(terms)
	slices.SortStableFunc(out, func(a, b cluster.WeightedAffinityTerm) int { return cmp.Compare(a.Weight, b.Weight) })
	return out
}

// tolerations are the pod's own, and one for every PreferNoSchedule taint once those no longer matter.
func (w wish) tolerations() []cluster.Toleration {
	if !w.bearsAll {
		return w.pod.Tolerations
	}
	return append(slices.Clone(w.pod.Tolerations), cluster.Toleration{Operator: "Exists", Effect: "PreferNoSchedule"})
}

// alternatives are the sets of node requirements of which any one must hold: the node selector, one required affinity term,
// the heaviest preferred term, and one alternative of the pod's volumes. Sets that nothing can meet are left out.
func (w wish) alternatives(volumes bool) []require.Set {
	base := canonical(require.FromLabels(w.pod.NodeSelector).All())
	if len(w.nodes) > 0 {
		base = slices.Concat(base, canonical(w.nodes[len(w.nodes)-1].Requirements))
	}
	terms := w.pod.NodeAffinity
	if len(terms) == 0 {
		terms = [][]require.Requirement{nil}
	}
	zones := w.pod.VolumeZones
	if len(zones) == 0 || !volumes {
		zones = [][]require.Requirement{nil}
	}
	var out []require.Set
	for _, t := range terms {
		if len(t) == 0 && len(w.pod.NodeAffinity) > 0 {
			continue // Kubernetes: an empty term matches no node
		}
		for _, z := range zones {
			s := require.NewSet(slices.Concat(base, canonical(t), canonical(z))...)
			if len(s.Impossible()) == 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

// canonical replaces old names of label keys.
func canonical(rs []require.Requirement) []require.Requirement {
	var out []require.Requirement
	for _, r := range rs {
		r.Key = canonicalKey(r.Key)
		out = append(out, r)
	}
	return out
}

// canonicalKey is the name in use today of a well-known label key (spec core.md §1.4, §0.2).
func canonicalKey(key string) string {
	switch key {
	case "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone":
		return labelZone
	case "failure-domain.beta.kubernetes.io/region":
		return labelRegion
	case "beta.kubernetes.io/arch":
		return labelArch
	case "beta.kubernetes.io/os":
		return labelOS
	case "beta.kubernetes.io/instance-type":
		return labelType
	}
	return key
}
