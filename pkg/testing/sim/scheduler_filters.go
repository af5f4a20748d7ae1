package sim

import (
	"fmt"
	"slices"
	"strconv"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// nodeFits reports whether the node, of which pods use so much, may take the pod.
func (k *scheduler) nodeFits(p *pod, n *node, used resources.List) bool {
	return k.filterOut(p, n, used) == ""
}

const tooFull = "resources"

// refusalReason says why the node does not take the pod: resources, taints, labels, pod affinity, spread or volumes. It
// is empty if it does.
func (k *scheduler) refusalReason(p *pod, n *node) string {
	used := k.usedByNode()[n.Name]
	why := k.filterOut(p, n, used)
	if why == tooFull {
		return fmt.Sprintf("%s do not fit into %s", used.Add(p.Need), n.Allocatable)
	}
	return why
}

// usedByNode returns what the pods on each node use.
func (k *scheduler) usedByNode() map[string]resources.List {
	out := map[string]resources.List{}
	for _, p := range k.api.pods {
		if p.NodeName != "" && !p.Terminal() {
			out[p.NodeName] = out[p.NodeName].Add(p.Need)
		}
	}
	return out
}

// filterOut is the first filter that the node does not pass, or empty.
func (k *scheduler) filterOut(p *pod, n *node, used resources.List) string {
	if !n.Ready || n.down {
		return "not ready"
	}
	if bad := cluster.Untolerated(hardTaints(n.Taints), p.allTolerations()); len(bad) > 0 {
		return "taint " + bad[0].Key
	}
	for _, part := range p.Requires {
		if !slices.Contains(n.Provides, part) {
			return "lacks " + part
		}
	}
	switch {
	case !used.Add(p.Need).FitsIn(n.Allocatable):
		return tooFull
	case !podSelects(p, n.Labels):
		return "node selector"
	case !k.affinityAllows(p, n):
		return "pod affinity"
	case !k.spreadAllows(p, n):
		return "spread"
	}
	return k.refusesVolumes(p, n)
}

func hardTaints(taints []cluster.Taint) []cluster.Taint {
	soft := func(t cluster.Taint) bool { return t.Effect == "PreferNoSchedule" }
	if !slices.ContainsFunc(taints, soft) {
		return taints
	}
	return slices.DeleteFunc(slices.Clone(taints), soft)
}

// podSelects reports whether the pod's node selector and required node affinity allow a node with these labels.
func podSelects(p *pod, labels map[string]string) bool {
	for k, v := range p.NodeSelector {
		if have, ok := labels[k]; !ok || have != v {
			return false
		}
	}
	return len(p.NodeAffinity) == 0 || slices.ContainsFunc(p.NodeAffinity, func(term []requirements.Requirement) bool {
		return !slices.ContainsFunc(term, func(r requirements.Requirement) bool { return !requirementMet(r, labels) })
	})
}

// requirementMet reports whether the labels meet a node selector requirement, as Kubernetes judges it.
func requirementMet(r requirements.Requirement, labels map[string]string) bool {
	v, ok := labels[r.Key]
	number, err := strconv.ParseInt(v, 10, 64)
	switch r.Operator() {
	case requirements.In:
		return ok && slices.Contains(r.Values, v)
	case requirements.NotIn:
		return !ok || !slices.Contains(r.Values, v)
	case requirements.Exists:
		return ok
	case requirements.DoesNotExist:
		return !ok
	case requirements.Gte:
		return ok && err == nil && number >= *r.Min
	case requirements.Lte:
		return ok && err == nil && number <= *r.Max
	}
	return false
}

// domainOf returns the domain of a node for a topology key.
func domainOf(n *node, key string) (string, bool) {
	if key == "kubernetes.io/hostname" {
		return n.Name, true
	}
	v, ok := n.Labels[key]
	return v, ok
}

// affinityAllows reports whether required pod affinity and anti-affinity, of the pod and of those that are there, allow
// the node.
func (k *scheduler) affinityAllows(p *pod, n *node) bool {
	for _, term := range p.Affinity {
		here, anywhere := k.matchingPods(p, term, n)
		if here == 0 && (anywhere > 0 || !k.termSelects(p, term, p)) {
			return false
		}
	}
	for _, term := range p.AntiAffinity {
		if here, _ := k.matchingPods(p, term, n); here > 0 {
			return false
		}
	}
	for _, other := range k.api.pods {
		host := k.api.nodes[other.NodeName]
		if host == nil || other.Terminal() {
			continue
		}
		for _, term := range other.AntiAffinity {
			a, okA := domainOf(host, term.Key)
			b, okB := domainOf(n, term.Key)
			if okA && okB && a == b && k.termSelects(other, term, p) {
				return false
			}
		}
	}
	return true
}

// termSelects reports whether a term of the pod selects the other: in the namespaces that it names or selects, or in
// the pod's own if it says nothing of namespaces.
func (k *scheduler) termSelects(p *pod, term cluster.AffinityTerm, other *pod) bool {
	in := slices.Contains(term.Namespaces, other.Namespace)
	if len(term.Namespaces) == 0 && term.NamespaceSelector == nil {
		in = p.Namespace == other.Namespace
	}
	for _, n := range k.api.namespaces {
		in = in || n.Name == other.Namespace && term.NamespaceSelector.Matches(n.Labels)
	}
	return in && term.Selector.Matches(other.Labels)
}

// matchingPods counts the pods that a term of the pod selects in the node's domain, and in any.
func (k *scheduler) matchingPods(p *pod, term cluster.AffinityTerm, n *node) (here, anywhere int) {
	want, ok := domainOf(n, term.Key)
	for _, other := range k.api.pods {
		host := k.api.nodes[other.NodeName]
		if host == nil || other.Terminal() || !k.termSelects(p, term, other) {
			continue
		}
		anywhere++
		if d, there := domainOf(host, term.Key); there && ok && d == want {
			here++
		}
	}
	return here, anywhere
}

// spreadAllows reports whether the hard topology spread constraints of the pod allow the node.
func (k *scheduler) spreadAllows(p *pod, n *node) bool {
	for _, s := range p.Spread {
		if s.Soft {
			continue
		}
		own, ok := domainOf(n, s.Key)
		if !ok {
			return false
		}
		count := map[string]int{}
		for _, other := range k.api.nodes {
			if d, there := domainOf(other, s.Key); there && podSelects(p, other.Labels) {
				count[d] += 0
			}
		}
		for _, other := range k.api.pods {
			host := k.api.nodes[other.NodeName]
			if host == nil || !other.Active() || other.Namespace != p.Namespace || !s.Selector.Matches(other.Labels) ||
				!podSelects(p, host.Labels) {
				continue
			}
			if d, there := domainOf(host, s.Key); there {
				count[d]++
			}
		}
		least := count[own]
		for _, c := range count {
			least = min(least, c)
		}
		if int(s.MinDomains) > len(count) {
			least = 0
		}
		if count[own]+1-least > int(s.MaxSkew) {
			return false
		}
	}
	return true
}

// refusesVolumes says why the scheduler keeps the pod off the node for the sake of volumes.
func (k *scheduler) refusesVolumes(p *pod, n *node) string {
	if len(p.volumeClaims) == 0 {
		return ""
	}
	var others []string
	for _, other := range k.api.pods {
		if other.NodeName == n.Name && !other.Terminal() {
			others = append(others, other.volumeClaims...)
		}
	}
	return k.volumes.refuse(p.volumeClaims, n.Name, n.Labels[labelZone], others)
}
