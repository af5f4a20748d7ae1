package capacity

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/scheduling/podclass"
)

// countDaemons takes what DaemonSets need off the room of the pool's offerings. One that fits no type of the pool,
// beside the smaller ones there, counts for none: kube-scheduler leaves only its own pods without a place.
func (b *CatalogBuilder) countDaemons(p *OfferingPool) {
	as := b.catalog.Admissions
	if len(as.Daemons) > 0 {
		p.oversized = oversizedIn(as, p.Offerings)
	}
	for i, o := range p.Offerings {
		if i > 0 && len(as.Daemons) == 0 && o.InstanceType == p.Offerings[i-1].InstanceType {
			o.Room = p.Offerings[i-1].Room
			continue
		}
		o.Daemons = slices.DeleteFunc(o.Daemons, func(i int) bool { return slices.Contains(p.oversized, i) })
		if i > 0 && slices.Equal(o.Daemons, p.Offerings[i-1].Daemons) {
			o.DaemonNeed, o.Ports = p.Offerings[i-1].DaemonNeed, p.Offerings[i-1].Ports
		} else {
			for _, i := range o.Daemons {
				o.DaemonNeed = o.DaemonNeed.Add(as.Daemons[i].Pod.Need)
				o.Ports = append(o.Ports, as.Daemons[i].Pod.HostPorts...)
			}
		}
		o.Room = b.catalog.dims.VectorOf(o.InstanceType.Type.Allocatable.Sub(o.DaemonNeed))
		b.catalog.dims.SetVolumes(o.Room, o.InstanceType.Volumes)
	}
}

// oversizedIn are the DaemonSets that none of the offerings that admit them has room for beside the smaller ones,
// sorted.
func oversizedIn(as *podclass.Admissions, offerings []*Offering) (out []int) {
	admitted := make([][]int, len(as.Daemons)) // places of offerings
	var most resources.List
	for k, o := range offerings {
		most = most.Max(o.InstanceType.Type.Allocatable)
		for _, i := range o.Daemons {
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
	taken := make([]resources.List, len(offerings))
	for _, i := range all {
		need := as.Daemons[i].Pod.Need
		if !slices.ContainsFunc(admitted[i], func(k int) bool {
			all := offerings[k].InstanceType.Type.Allocatable
			return need.FitsIn(all) && taken[k].Add(need).FitsIn(all)
		}) {
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
func (cat *Catalog) oversizedOn(pool string) []int {
	for _, p := range cat.Pools {
		if p.Name == pool {
			return p.oversized
		}
	}
	return nil
}

// OversizedDaemons are the DaemonSets that count for no node of some pools, with these, sorted.
func (cat *Catalog) OversizedDaemons() (out []plan.OversizedDaemon) {
	pools := map[int][]string{}
	for _, p := range cat.Pools {
		for _, i := range p.oversized {
			pools[i] = append(pools[i], p.Name)
		}
	}
	for i, d := range cat.Admissions.Daemons {
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
