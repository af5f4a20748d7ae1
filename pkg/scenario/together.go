package scenario

import (
	"fmt"
	"slices"

	"joiner/pkg/cluster"
)

// together checks the rules between pods: spread, affinity and anti-affinity, of the pods that the plan placed and of the
// pods that were there.
func (w *World) together(machines []*machine) []string {
	var bad []string
	for _, m := range machines {
		for _, pod := range m.came {
			for _, t := range pod.AntiAffinity {
				bad = append(bad, w.keptApart(machines, m, pod, t)...)
			}
			for _, t := range pod.Affinity {
				bad = append(bad, w.keptNear(machines, m, pod, t)...)
			}
			for _, c := range pod.Spread {
				if !c.Soft {
					bad = append(bad, w.keptEven(machines, m, pod, c)...)
				}
			}
		}
		for _, pod := range m.pods {
			if slices.ContainsFunc(m.came, func(c cluster.Pod) bool { return c.Key() == pod.Key() }) {
				continue
			}
			for _, t := range pod.AntiAffinity {
				bad = append(bad, w.leftAlone(machines, m, pod, t)...)
			}
		}
	}
	return bad
}

// means reports whether the term of the pod selects the other pod.
func (w *World) means(pod cluster.Pod, t cluster.AffinityTerm, other cluster.Pod) bool {
	in := len(t.Namespaces) == 0 && t.NamespaceSelector == nil && other.Namespace == pod.Namespace || slices.Contains(t.Namespaces, other.Namespace)
	for _, n := range w.Snapshot.Namespaces {
		in = in || n.Name == other.Namespace && t.NamespaceSelector.Matches(n.Labels)
	}
	return in && t.Selector.Matches(other.Labels)
}

func share(a, b []string) bool {
	return slices.ContainsFunc(a, func(x string) bool { return slices.Contains(b, x) })
}

func (w *World) keptApart(all []*machine, m *machine, pod cluster.Pod, t cluster.AffinityTerm) []string {
	var bad []string
	for _, o := range all {
		for _, other := range o.pods {
			if other.Active() && other.Key() != pod.Key() && w.means(pod, t, other) && share(m.domains(t.Key), o.domains(t.Key)) {
				bad = append(bad, fmt.Sprintf("%s and %s share a value of %s (%s, %s)", pod.Name, other.Name, t.Key, m, o))
			}
		}
	}
	return bad
}

// leftAlone is keptApart for a pod that was there: only newcomers can break it.
func (w *World) leftAlone(all []*machine, m *machine, pod cluster.Pod, t cluster.AffinityTerm) []string {
	var bad []string
	for _, o := range all {
		for _, other := range o.came {
			if pod.Active() && w.means(pod, t, other) && share(m.domains(t.Key), o.domains(t.Key)) {
				bad = append(bad, fmt.Sprintf("%s came too near to %s", other.Name, pod.Name))
			}
		}
	}
	return bad
}

// keptNear wants a selected pod in the same domain; the only pods of their kind may start a domain, all in one.
func (w *World) keptNear(all []*machine, m *machine, pod cluster.Pod, t cluster.AffinityTerm) []string {
	here := m.domains(t.Key)
	if len(here) != 1 {
		return []string{fmt.Sprintf("%s is not tied to one value of %s", pod.Name, t.Key)}
	}
	for _, o := range all {
		for _, other := range o.pods {
			if other.Active() && other.Key() != pod.Key() && w.means(pod, t, other) && slices.Equal(o.domains(t.Key), here) {
				return nil
			}
		}
	}
	for _, o := range all {
		for _, other := range o.pods {
			if other.Active() && other.Key() != pod.Key() && w.means(pod, t, other) {
				return []string{fmt.Sprintf("%s is in %v, away from %s", pod.Name, here, other.Name)}
			}
		}
	}
	if !w.means(pod, t, pod) {
		return []string{fmt.Sprintf("%s has nobody to be near to", pod.Name)}
	}
	return nil
}

// keptEven counts the pods of the constraint by domain, where all that it selects carry it.
func (w *World) keptEven(all []*machine, m *machine, pod cluster.Pod, c cluster.Spread) []string {
	t := cluster.AffinityTerm{Key: c.Key, Selector: c.Selector}
	if !w.means(pod, t, pod) {
		return nil
	}
	count := map[string]int{}
	for _, d := range w.values(pod, c) {
		count[d] = 0
	}
	for _, o := range all {
		for _, other := range o.pods {
			if !other.Active() || !w.means(pod, t, other) {
				continue
			}
			if !slices.ContainsFunc(other.Spread, func(x cluster.Spread) bool { return x.Key == c.Key && !x.Soft }) {
				return nil // others that do not keep even may come at any time
			}
			d := o.domains(c.Key)
			if len(d) > 1 {
				return []string{fmt.Sprintf("%s may end in any of %v", other.Name, d)}
			}
			if len(d) == 1 && (c.IgnoreNodeAffinity || slices.ContainsFunc(o.shapes, func(s shape) bool { return nodeSuitsBare(pod, s.labels) })) {
				count[d[0]]++
			}
		}
	}
	least, n := -1, 0
	for _, have := range count {
		if n++; least < 0 || have < least {
			least = have
		}
	}
	if c.Key == key("host") || n < int(c.MinDomains) {
		least = 0
	}
	if here := m.domains(c.Key); len(here) == 1 && count[here[0]]-least > int(c.MaxSkew) {
		return []string{fmt.Sprintf("%s: %d pods in %s, %d in the least of %s", pod.Name, count[here[0]], here[0], least, c.Key)}
	}
	return nil
}

func nodeSuitsBare(p cluster.Pod, labels map[string]string) bool {
	p.VolumeZones = nil
	return nodeSuits(p, labels)
}

// values are the domains of the constraint: what pools sell and nodes have, where the pod's own node rules allow it.
func (w *World) values(pod cluster.Pod, c cluster.Spread) []string {
	if c.Key == key("host") {
		return nil
	}
	bare := pod
	bare.VolumeZones = nil
	if c.IgnoreNodeAffinity {
		bare.NodeSelector, bare.NodeAffinity = nil, nil
	}
	var out []string
	for _, pool := range w.Snapshot.Pools {
		if !pool.Ready || pool.Deleting || pool.Static || c.HonorTaints && len(cluster.Untolerated(pool.Taints, pod.Tolerations)) > 0 {
			continue
		}
		for _, s := range w.shapes(pool, nil, pool.Requirements) {
			choices := []string{s.labels[c.Key]}
			if r, ok := pool.Requirements.Get(c.Key); ok && choices[0] == "" {
				choices = r.Values
			}
			for _, v := range choices {
				s.labels[c.Key] = v
				if v != "" && nodeSuits(bare, s.labels) {
					out = append(out, v)
				}
			}
		}
	}
	return out
}
