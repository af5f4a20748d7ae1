package podclass

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
)

// Constraints is a pod's constraints with some of its preferences taken as rules.
type Constraints struct {
	Pod      cluster.Pod                    // whose required constraints hold at every step
	Prefers  []cluster.WeightedAffinityTerm // lightest first, as all lists here
	Avoids   []cluster.WeightedAffinityTerm // preferred anti-affinity that is still a rule; empty for none
	nodes    []cluster.WeightedRequirements
	Soft     []cluster.Spread // spreads with ScheduleAnyway that are still rules; empty for none
	BearsAll bool             // taints with effect PreferNoSchedule no longer matter
}

// RelaxationSteps lists a pod's constraints from the strictest to the one without preferences. Each step drops one
// preference in the order; its first step, the ORed terms of required node affinity, needs no relaxing here because all
// terms are tried at once.
func RelaxationSteps(p cluster.Pod, ignore, anySoftTaint bool) []Constraints {
	constraints := Constraints{Pod: p, BearsAll: !anySoftTaint}
	if ignore {
		constraints.BearsAll = true
		return []Constraints{constraints}
	}
	constraints.Prefers, constraints.Avoids = lightestFirst(p.Prefers), lightestFirst(p.Avoids)
	constraints.nodes = slices.Clone(p.NodePrefers)
	slices.SortStableFunc(constraints.nodes, func(a, b cluster.WeightedRequirements) int {
		return cmp.Compare(a.Weight,
			b.Weight)
	})
	for _, c := range p.Spread {
		if c.Soft {
			constraints.Soft = append(constraints.Soft, c)
		}
	}
	out := []Constraints{constraints}
	for {
		switch {
		case len(constraints.Prefers) > 0:
			constraints.Prefers = constraints.Prefers[:len(constraints.Prefers)-1]
		case len(constraints.Avoids) > 0:
			constraints.Avoids = constraints.Avoids[:len(constraints.Avoids)-1]
		case len(constraints.nodes) > 0:
			constraints.nodes = constraints.nodes[:len(constraints.nodes)-1]
		case len(constraints.Soft) > 0:
			constraints.Soft = constraints.Soft[:len(constraints.Soft)-1]
		case !constraints.BearsAll:
			constraints.BearsAll = true
		default:
			return out
		}
		out = append(out, constraints)
	}
}

func lightestFirst(terms []cluster.WeightedAffinityTerm) []cluster.WeightedAffinityTerm {
	out := slices.Clone(terms)
	slices.SortStableFunc(out, func(a, b cluster.WeightedAffinityTerm) int { return cmp.Compare(a.Weight, b.Weight) })
	return out
}

// EffectiveTolerations are the pod's own, and one for every PreferNoSchedule taint once those no longer matter.
func (c Constraints) EffectiveTolerations() []cluster.Toleration {
	if !c.BearsAll {
		return c.Pod.Tolerations
	}
	return append(slices.Clone(c.Pod.Tolerations), cluster.Toleration{Operator: "Exists", Effect: "PreferNoSchedule"})
}

// NodeAlternatives are the sets of node requirements of which any one must hold: the node selector, one required
// affinity term, the heaviest preferred term, and one alternative of the pod's volumes. Sets that nothing can meet are
// left out.
func (c Constraints) NodeAlternatives(volumes bool) []requirements.Set {
	base := canonicalKeys(requirements.FromLabels(c.Pod.NodeSelector).All())
	if len(c.nodes) > 0 {
		base = slices.Concat(base, canonicalKeys(c.nodes[len(c.nodes)-1].Requirements))
	}
	terms := c.Pod.NodeAffinity
	if len(terms) == 0 {
		terms = [][]requirements.Requirement{nil}
	}
	zones := c.Pod.VolumeZones
	if len(zones) == 0 || !volumes {
		zones = [][]requirements.Requirement{nil}
	}
	var out []requirements.Set
	for _, t := range terms {
		if len(t) == 0 && len(c.Pod.NodeAffinity) > 0 {
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
		r.Key = CanonicalKey(r.Key)
		out = append(out, r)
	}
	return out
}

// CanonicalKey is the name in use today of a well-known label key.
func CanonicalKey(key string) string {
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

// AddTopologyKeys adds the keys over which the pod spreads, or is near to or apart from others.
func AddTopologyKeys(p *cluster.Pod, keys map[string]bool) {
	for _, c := range p.Spread {
		keys[CanonicalKey(c.Key)] = true
	}
	for _, list := range [][]cluster.AffinityTerm{p.Affinity, p.AntiAffinity} {
		for _, t := range list {
			keys[CanonicalKey(t.Key)] = true
		}
	}
	for _, list := range [][]cluster.WeightedAffinityTerm{p.Prefers, p.Avoids} {
		for _, t := range list {
			keys[CanonicalKey(t.Term.Key)] = true
		}
	}
}
