package binpack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
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
		if d.Need.IsZero() && len(d.Unmodelled) > 0 {
			continue // it counts for no node: see translate.BoundDaemons
		}
		d.NodePrefers = nil
		x := relaxationSteps(d, true, false)[0]
		as.daemons = append(as.daemons, daemonOverhead{pod: d,
			admit: as.admissionFor(x.nodeAlternatives(false), x.effectiveTolerations())})
	}
}

// countDaemons takes what DaemonSets need off the room of the pool's offers. One that fits no type of the pool, beside
// the smaller ones there, counts for none: kube-scheduler leaves only its own pods without a place.
func (b *catalogBuilder) countDaemons(p *pool) {
	as := b.catalog.admissions
	p.oversized = as.oversizedIn(p.offers)
	for _, o := range p.offers {
		o.daemons = slices.DeleteFunc(o.daemons, func(i int) bool { return slices.Contains(p.oversized, i) })
		for _, i := range o.daemons {
			o.list = o.list.Add(as.daemons[i].pod.Need)
			o.ports = append(o.ports, as.daemons[i].pod.HostPorts...)
		}
		o.room = b.catalog.dims.vectorOf(o.model.typ.Allocatable.Sub(o.list))
		b.catalog.dims.setVolumes(o.room, o.model.volumes)
	}
}

// oversizedIn are the DaemonSets that none of the offers that admit them has room for beside the smaller ones, sorted.
func (as *admissions) oversizedIn(offers []*poolOffering) (out []int) {
	admitted := make([][]int, len(as.daemons)) // places of offers
	var most resources.List
	for k, o := range offers {
		most = most.Max(o.model.typ.Allocatable)
		for _, i := range o.daemons {
			admitted[i] = append(admitted[i], k)
		}
	}
	var all []int
	for i := range admitted {
		if len(admitted[i]) > 0 {
			all = append(all, i)
		}
	}
	as.sortByRoom(all, most)
	slices.Reverse(all)
	taken := make([]resources.List, len(offers))
	for _, i := range all {
		need := as.daemons[i].pod.Need
		if !slices.ContainsFunc(admitted[i],
			func(k int) bool { return taken[k].Add(need).FitsIn(offers[k].model.typ.Allocatable) }) {
			out = append(out, i)
			continue
		}
		for _, k := range admitted[i] {
			taken[k] = taken[k].Add(need)
		}
	}
	slices.Sort(out)
	return out
}

// oversizedOn are the DaemonSets that count for no node of the pool.
func (cat *catalog) oversizedOn(pool string) []int {
	for _, p := range cat.pools {
		if p.Name == pool {
			return p.oversized
		}
	}
	return nil
}

// sortByRoom sorts DaemonSets by what they take of the most that there is, those that take most first.
func (as *admissions) sortByRoom(list []int, most resources.List) {
	share := func(i int) float64 {
		need, out := as.daemons[i].pod.Need, 0.0
		for _, name := range need.Names() {
			out = max(out, float64(need.Get(name))/float64(max(1, most.Get(name))))
		}
		return out
	}
	slices.SortFunc(list, func(a, b int) int {
		return cmp.Or(cmp.Compare(share(b), share(a)),
			strings.Compare(as.daemons[a].pod.Key(), as.daemons[b].pod.Key()))
	})
}

// oversizedDaemons are the DaemonSets that count for no node of some pools, with these, sorted.
func (cat *catalog) oversizedDaemons() (out []plan.OversizedDaemon) {
	pools := map[int][]string{}
	for _, p := range cat.pools {
		for _, i := range p.oversized {
			pools[i] = append(pools[i], p.Name)
		}
	}
	for i, d := range cat.admissions.daemons {
		if names := pools[i]; len(names) > 0 {
			slices.Sort(names)
			out = append(out, plan.OversizedDaemon{DaemonSet: d.pod.Key(),
				Need:  d.pod.Need.With(resources.Pods, 0).String(),
				Pools: names})
		}
	}
	slices.SortFunc(out, func(a, b plan.OversizedDaemon) int { return strings.Compare(a.DaemonSet, b.DaemonSet) })
	return out
}

// largestDaemons names those of the DaemonSets that take the most room, at most three, by what they take of the most
// that there is.
func (as *admissions) largestDaemons(all []int, most resources.List) string {
	const named = 3
	list := slices.Clone(all)
	as.sortByRoom(list, most)
	var parts []string
	for _, i := range list[:min(named, len(list))] {
		d := as.daemons[i].pod
		parts = append(parts, d.Key()+" ("+d.Need.With(resources.Pods, 0).String()+")")
	}
	if len(list) > named {
		parts = append(parts, fmt.Sprintf("%d more", len(list)-named))
	}
	return strings.Join(parts, ", ")
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
