package binpack

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// constraints is a pod's constraints with some of its preferences taken as rules.
type constraints struct {
	pod      cluster.Pod
	prefers  []cluster.WeightedAffinityTerm // lightest first, as all lists here
	avoids   []cluster.WeightedAffinityTerm
	nodes    []cluster.WeightedRequirements
	soft     []cluster.Spread
	bearsAll bool // taints with effect PreferNoSchedule no longer matter
}

// relaxationSteps lists a pod's constraints from the strictest to the one without preferences. Each step drops one
// preference in the order; its first step, the ORed terms of required node affinity, needs no relaxing here because all
// terms are tried at once.
func relaxationSteps(p cluster.Pod, ignore, anySoftTaint bool) []constraints {
	w := constraints{pod: p, bearsAll: !anySoftTaint}
	if ignore {
		w.bearsAll = true
		return []constraints{w}
	}
	w.prefers, w.avoids = lightestFirst(p.Prefers), lightestFirst(p.Avoids)
	w.nodes = slices.Clone(p.NodePrefers)
	slices.SortStableFunc(w.nodes, func(a, b cluster.WeightedRequirements) int {
		return cmp.Compare(a.Weight,
			b.Weight)
	})
	for _, c := range p.Spread {
		if c.Soft {
			w.soft = append(w.soft, c)
		}
	}
	out := []constraints{w}
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

// effectiveTolerations are the pod's own, and one for every PreferNoSchedule taint once those no longer matter.
func (w constraints) effectiveTolerations() []cluster.Toleration {
	if !w.bearsAll {
		return w.pod.Tolerations
	}
	return append(slices.Clone(w.pod.Tolerations), cluster.Toleration{Operator: "Exists", Effect: "PreferNoSchedule"})
}

// nodeAlternatives are the sets of node requirements of which any one must hold: the node selector, one required
// affinity term, the heaviest preferred term, and one alternative of the pod's volumes. Sets that nothing can meet are
// left out.
func (w constraints) nodeAlternatives(volumes bool) []requirements.Set {
	base := canonicalKeys(requirements.FromLabels(w.pod.NodeSelector).All())
	if len(w.nodes) > 0 {
		base = slices.Concat(base, canonicalKeys(w.nodes[len(w.nodes)-1].Requirements))
	}
	terms := w.pod.NodeAffinity
	if len(terms) == 0 {
		terms = [][]requirements.Requirement{nil}
	}
	zones := w.pod.VolumeZones
	if len(zones) == 0 || !volumes {
		zones = [][]requirements.Requirement{nil}
	}
	var out []requirements.Set
	for _, t := range terms {
		if len(t) == 0 && len(w.pod.NodeAffinity) > 0 {
			continue // Kubernetes: an empty term matches no node
		}
		for _, z := range zones {
			s := requirements.NewSet(slices.Concat(base, canonicalKeys(t), canonicalKeys(z))...)
			if len(s.Impossible()) == 0 {
				out = append(out, s)
			}
		}
	}
	return out
}

// canonicalKeys replaces old names of label keys.
func canonicalKeys(rs []requirements.Requirement) []requirements.Requirement {
	var out []requirements.Requirement
	for _, r := range rs {
		r.Key = canonicalKey(r.Key)
		out = append(out, r)
	}
	return out
}

// canonicalKey is the name in use today of a well-known label key.
func canonicalKey(key string) string {
	switch key {
	case "failure-domain.beta.kubernetes.io/zone", "topology.ebs.csi.aws.com/zone":
		return instancetypes.LabelZone
	case "failure-domain.beta.kubernetes.io/region":
		return instancetypes.LabelRegion
	case "beta.kubernetes.io/arch":
		return instancetypes.LabelArch
	case "beta.kubernetes.io/os":
		return instancetypes.LabelOS
	case "beta.kubernetes.io/instance-type":
		return instancetypes.LabelType
	}
	return key
}

// hasSoftTaints reports whether any node or pool has a taint that pods may have to put up with.
func hasSoftTaints(s cluster.Snapshot) bool {
	return slices.ContainsFunc(s.Pools, func(p cluster.Pool) bool { return slices.ContainsFunc(p.Taints, isSoft) }) ||
		slices.ContainsFunc(s.Nodes, func(n cluster.Node) bool { return slices.ContainsFunc(n.Taints, isSoft) })
}

func isSoft(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" }

// topologyKeys adds the keys over which the pod spreads, or is near to or apart from others.
func topologyKeys(p *cluster.Pod, keys map[string]bool) {
	for _, c := range p.Spread {
		keys[canonicalKey(c.Key)] = true
	}
	for _, list := range [][]cluster.AffinityTerm{p.Affinity, p.AntiAffinity} {
		for _, t := range list {
			keys[canonicalKey(t.Key)] = true
		}
	}
	for _, list := range [][]cluster.WeightedAffinityTerm{p.Prefers, p.Avoids} {
		for _, t := range list {
			keys[canonicalKey(t.Term.Key)] = true
		}
	}
}
