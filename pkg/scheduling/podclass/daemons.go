package podclass

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/model/topology"
)

// daemon is a DaemonSet as the pod that it makes for a node.
type daemon struct {
	Pod       cluster.Pod
	Admission *Admission
}

// addDaemons adds the DaemonSets, whose pods every node of theirs runs. Of their host ports those count that a pod of
// the classes asks for.
func (as *Admissions) addDaemons(list []cluster.Pod, waiting []*Class) {
	var asked []cluster.HostPort
	for _, class := range waiting {
		asked = append(asked, class.Pod.HostPorts...)
	}
	for _, d := range list {
		if d.Need.IsZero() && len(d.Unmodelled) > 0 {
			continue // it counts for no node: see translate.BoundDaemons
		}
		d.NodePrefers = nil
		d.HostPorts = lists.Where(d.HostPorts,
			func(h cluster.HostPort) bool { return cluster.PortsConflict([]cluster.HostPort{h}, asked) })
		x := RelaxationSteps(d, true, false)[0]
		as.Daemons = append(as.Daemons, daemon{Pod: d,
			Admission: as.AdmissionFor(x.NodeAlternatives(false), x.EffectiveTolerations())})
	}
}

// LargestDaemons names the DaemonSets that take the most room, as many as a sentence lists, by what they take of the
// most that there is.
func (as *Admissions) LargestDaemons(all []int, most resources.List) string {
	list := slices.Clone(all)
	as.SortByRoom(list, most)
	var parts []string
	for _, i := range list {
		d := as.Daemons[i].Pod
		parts = append(parts, d.Key()+" ("+d.Need.With(resources.Pods, 0).String()+")")
	}
	return lists.Name(parts, ", ")
}

// SortByRoom sorts DaemonSets by what they take of the most that there is, those that take most first.
func (as *Admissions) SortByRoom(list []int, most resources.List) {
	share := func(i int) float64 {
		need, out := as.Daemons[i].Pod.Need, 0.0
		for _, name := range need.Names() {
			out = max(out, float64(need.Get(name))/float64(max(1, most.Get(name))))
		}
		return out
	}
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(cmp.Compare(share(b), share(a)),
			strings.Compare(as.Daemons[a].Pod.Key(), as.Daemons[b].Pod.Key()))
	})
}

// Exclusion is a DaemonSet with whose pods a pod may not share a domain of the key, because required anti-affinity of
// either keeps them apart. A new node has its DaemonSets' pods as soon as it takes any, so the pod cannot be on one
// that runs the DaemonSet.
type Exclusion struct {
	Daemon int    // place among all
	Key    string // topology key of the anti-affinity
}

// exclusions returns the DaemonSets that the pod keeps away or that keep it away, sorted by DaemonSet.
func (as *Admissions) exclusions(p *cluster.Pod) []Exclusion {
	var out []Exclusion
	for i := range as.Daemons {
		d := &as.Daemons[i].Pod
		for _, key := range append(as.excludedOver(p, d), as.excludedOver(d, p)...) {
			if x := (Exclusion{i, key}); !slices.Contains(out, x) {
				out = append(out, x)
			}
		}
	}
	return out
}

// excludedOver lists the topology keys over which required anti-affinity of the pod selects the other.
func (as *Admissions) excludedOver(p, other *cluster.Pod) []string {
	var keys []string
	for _, t := range p.AntiAffinity {
		if topology.OfTerm(t, p.Namespace, as.Namespaces).Selects(other.Namespace, other.Labels) {
			keys = append(keys, CanonicalKey(t.Key))
		}
	}
	return keys
}
