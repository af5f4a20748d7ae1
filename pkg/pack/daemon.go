package pack

import (
	"slices"

	"joiner/pkg/cluster"
	"joiner/pkg/topology"
)

// daemon is a DaemonSet as the pod that it makes for a node.
type daemon struct {
	pod   cluster.Pod
	admit *admission
}

func (w *world) addDaemons() {
	for _, d := range w.s.Daemons {
		d.NodePrefers = nil
		x := wishes(d, true, false)[0]
		w.daemons = append(w.daemons, daemon{pod: d, admit: w.admission(x.alternatives(false), x.tolerations())})
	}
}

// exclusion is a DaemonSet with whose pods a pod may not share a domain of the key, because required anti-affinity of either keeps them
// apart. A new node has its DaemonSets' pods as soon as it takes any, so the pod cannot be on one that runs the DaemonSet.
type exclusion struct {
	daemon int // place among the world's
	key    string
}

// exclusions are those of the pod, sorted by DaemonSet.
func (w *world) exclusions(p *cluster.Pod) []exclusion {
	var out []exclusion
	for i := range w.daemons {
		d := &w.daemons[i].pod
		for _, key := range append(w.excludedOver(p, d), w.excludedOver(d, p)...) {
			if x := (exclusion{i, key}); !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// excludedOver lists the topology keys over which required anti-affinity of the pod selects the other.
func (w *world) excludedOver(p, other *cluster.Pod) []string {
	var keys []string
	for _, t := range p.AntiAffinity {
		if topology.OfTerm(t, p.Namespace, w.s.Namespaces).Selects(other.Namespace, other.Labels) {
			keys = append(keys, canonicalKey(t.Key))
		}
	}
	return keys
}

// runs reports whether nodes of the offer have a pod of the DaemonSet and a value for the key.
func (o *offer) runs(x exclusion) bool {
	return slices.Contains(o.daemons, x.daemon) && (x.key == labelHost || len(o.domains(x.key)) > 0)
}

// excludes reports whether the pod may not be on nodes of the offer because of the DaemonSets that those run.
func (a *admission) excludes(o *offer) bool { return slices.ContainsFunc(a.exclusions, o.runs) }

// awaits reports whether the host will have a pod of the DaemonSet and a value for the key.
func (b *bin) awaits(x exclusion) bool {
	if !slices.Contains(b.daemons, x.daemon) {
		return false
	}
	_, has := b.known.Get(x.key)
	return has || x.key == labelHost || everywhere(x.key)
}

// comingDaemons are the DaemonSets whose pods the host gets once it is in service: of a claim that is not launched yet, those of any offer
// that it may become.
func (w *world) comingDaemons(h cluster.Host, b *bin) []int {
	if h.Initialized() {
		return nil
	}
	var out []int
	if h.Claim != nil && h.Allocatable().IsZero() {
		for _, o := range w.becomes(*h.Claim) {
			out = append(out, o.daemons...)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for i, d := range w.daemons {
		if w.onHost(d.admit, b) >= 0 {
			out = append(out, i)
		}
	}
	return out
}
