package topology

import "joiner.sh/pkg/model/cluster"

// DependsOn reports whether where the other pod comes to stand may be what lets p be somewhere: a required spread of p
// counts it, or a required affinity wants it near.
func DependsOn(p, other cluster.Pod, all Namespaces) bool {
	for _, c := range p.Spread {
		if !c.Soft && OfSpread(c, p.Namespace).Selects(other.Namespace, other.Labels) {
			return true
		}
	}
	for _, t := range p.Affinity {
		if OfTerm(t, p.Namespace, all).Selects(other.Namespace, other.Labels) {
			return true
		}
	}
	return false
}
