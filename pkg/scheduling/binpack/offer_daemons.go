package binpack

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// countDaemons takes what DaemonSets need off the room of the pool's offers. One that fits no type of the pool, beside
// the smaller ones there, counts for none: kube-scheduler leaves only its own pods without a place.
func (b *catalogBuilder) countDaemons(p *pool) {
	as := b.catalog.admissions
	p.oversized = oversizedIn(as, p.offers)
	for _, o := range p.offers {
		o.daemons = slices.DeleteFunc(o.daemons, func(i int) bool { return slices.Contains(p.oversized, i) })
		for _, i := range o.daemons {
			o.list = o.list.Add(as.Daemons[i].Pod.Need)
			o.ports = append(o.ports, as.Daemons[i].Pod.HostPorts...)
		}
		o.room = b.catalog.dims.VectorOf(o.model.typ.Allocatable.Sub(o.list))
		b.catalog.dims.SetVolumes(o.room, o.model.volumes)
	}
}

// oversizedIn are the DaemonSets that none of the offers that admit them has room for beside the smaller ones, sorted.
func oversizedIn(as *podclass.Admissions, offers []*poolOffering) (out []int) {
	admitted := make([][]int, len(as.Daemons)) // places of offers
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
	as.SortByRoom(all, most)
	slices.Reverse(all)
	taken := make([]resources.List, len(offers))
	for _, i := range all {
		need := as.Daemons[i].Pod.Need
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

// oversizedDaemons are the DaemonSets that count for no node of some pools, with these, sorted.
func (cat *catalog) oversizedDaemons() (out []plan.OversizedDaemon) {
	pools := map[int][]string{}
	for _, p := range cat.pools {
		for _, i := range p.oversized {
			pools[i] = append(pools[i], p.Name)
		}
	}
	for i, d := range cat.admissions.Daemons {
		if names := pools[i]; len(names) > 0 {
			slices.Sort(names)
			out = append(out, plan.OversizedDaemon{DaemonSet: d.Pod.Key(),
				Need:  d.Pod.Need.With(resources.Pods, 0).String(),
				Pools: names})
		}
	}
	slices.SortFunc(out, func(a, b plan.OversizedDaemon) int { return strings.Compare(a.DaemonSet, b.DaemonSet) })
	return out
}

// runs reports whether nodes of the offer have a pod of the DaemonSet and a value for the key.
func (o *poolOffering) runs(x podclass.Exclusion) bool {
	return slices.Contains(o.daemons, x.Daemon) && (x.Key == podclass.LabelHost || len(o.domainsFor(x.Key)) > 0)
}

// keepsOff reports whether pods of the admission may not be on nodes of the offering because of the DaemonSets that
// those run.
func (o *poolOffering) keepsOff(a *podclass.Admission) bool {
	return slices.ContainsFunc(a.Exclusions, o.runs)
}

// awaits reports whether the host will have a pod of the DaemonSet and a value for the key.
func (b *bin) awaits(x podclass.Exclusion) bool {
	if !slices.Contains(b.daemons, x.Daemon) {
		return false
	}
	_, has := b.known.Get(x.Key)
	return has || x.Key == podclass.LabelHost || podclass.OnEveryNode(x.Key)
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
	for i, d := range en.catalog.admissions.Daemons {
		if b.alternativeFor(d.Admission) >= 0 {
			out = append(out, i)
		}
	}
	return out
}
