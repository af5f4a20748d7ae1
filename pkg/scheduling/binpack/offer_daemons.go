package binpack

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/topology"
)

// daemonOverhead is a DaemonSet as the pod that it makes for a node.
type daemonOverhead struct {
	pod   cluster.Pod
	admit *nodeAdmission
}

// addDaemons adds the DaemonSets, whose pods every node of theirs runs.
func (as *admissions) addDaemons(list []cluster.Pod) {
	for _, d := range list {
		d.NodePrefers = nil
		x := relaxationSteps(d, true, false)[0]
		as.daemons = append(as.daemons, daemonOverhead{pod: d,
			admit: as.admissionFor(x.nodeAlternatives(false), x.effectiveTolerations())})
	}
}

// exclusion is a DaemonSet with whose pods a pod may not share a domain of the key, because required anti-affinity of
// either keeps them apart. A new node has its DaemonSets' pods as soon as it takes any, so the pod cannot be on one
// that runs the DaemonSet.
type exclusion struct {
	daemon int // place among all
	key    string
}

// exclusions are those of the pod, sorted by DaemonSet.
func (as *admissions) exclusions(p *cluster.Pod) []exclusion {
	var out []exclusion
	for i := range as.daemons {
		d := &as.daemons[i].pod
		for _, key := range append(as.excludedOver(p, d), as.excludedOver(d, p)...) {
			if x := (exclusion{i, key}); !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// excludedOver lists the topology keys over which required anti-affinity of the pod selects the other.
func (as *admissions) excludedOver(p, other *cluster.Pod) []string {
	var keys []string
	for _, t := range p.AntiAffinity {
		if topology.OfTerm(t, p.Namespace, as.namespaces).Selects(other.Namespace, other.Labels) {
			keys = append(keys, canonicalKey(t.Key))
		}
	}
	return keys
}

// runs reports whether nodes of the offer have a pod of the DaemonSet and a value for the key.
func (o *poolOffering) runs(x exclusion) bool {
	return slices.Contains(o.daemons, x.daemon) && (x.key == labelHost || len(o.domainsFor(x.key)) > 0)
}

// excludes reports whether the pod may not be on nodes of the offer because of the DaemonSets that those run.
func (a *nodeAdmission) excludes(o *poolOffering) bool {
	return slices.ContainsFunc(a.exclusions, o.runs)
}

// awaits reports whether the host will have a pod of the DaemonSet and a value for the key.
func (b *bin) awaits(x exclusion) bool {
	if !slices.Contains(b.daemons, x.daemon) {
		return false
	}
	_, has := b.known.Get(x.key)
	return has || x.key == labelHost || onEveryNode(x.key)
}

// comingDaemons are the DaemonSets whose pods the host gets once it is in service: of a claim that is not launched yet,
// those of any offer that it may become.
func (en *existingNodes) comingDaemons(h cluster.StateNode, b *bin) []int {
	if h.Initialized() {
		return nil
	}
	var out []int
	if h.Claim != nil && h.Allocatable().IsZero() {
		for _, o := range en.catalog.becomes(*h.Claim) {
			out = append(out, o.daemons...)
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	for i, d := range en.catalog.admissions.daemons {
		if d.admit.alternativeOn(b) >= 0 {
			out = append(out, i)
		}
	}
	return out
}
