package binpack

import (
	"cmp"
	"math"
	"slices"
)

// noteScatteredGroups notes the groups of pods that had to be near each other on one node and were not all placed:
// another attempt puts each group on its node before anything else. False when there is nothing new to note.
func (a *solution) noteScatteredGroups(groups map[int]bool) bool {
	found := false
	for i, k := range a.w.classes.list {
		if len(a.rest[i]) == 0 || !a.w.catalog.forSome(k.lastRelaxation()) {
			continue
		}
		for _, r := range k.lastRelaxation().host {
			if r.what == follow && !groups[r.counter] {
				groups[r.counter] = true
				found = true
			}
		}
	}
	return found
}

// affinityGroup is a group of pods that want to be near each other on nodes.
type affinityGroup struct {
	hosts  []*podBatch // whom the others follow, and who follow nobody
	guests []*podBatch
}

// placeScatteredGroups places the groups that an earlier attempt scattered: everybody on one node where all follow each
// other, else as many nodes as it takes, each with one pod that is followed and its part of those that follow.
func (a *solution) placeScatteredGroups(now []*podClass, lots []*podBatch) {
	counters := make([]int, 0, len(a.groups))
	for c := range a.groups {
		counters = append(counters, c)
	}
	slices.Sort(counters)
	for _, c := range counters {
		var p affinityGroup
		for _, l := range lots {
			switch {
			case l.left == 0 || l.view.kind.stays:
			case l.view.followsOnHost(c):
				p.guests = append(p.guests, l)
			case slices.Contains(l.view.kind.matched, c):
				p.hosts = append(p.hosts, l)
			}
		}
		if a.total[c] > 0 {
			continue
		}
		if len(p.guests) > 0 {
			a.placeGroup(p)
		}
		a.hold(now, p, c)
	}
}

// followsOnHost reports whether pods of the view want to be on a node beside pods of the counter.
func (v *relaxedPod) followsOnHost(counter int) bool {
	return slices.ContainsFunc(v.host, func(r topologyRule) bool { return r.what == follow && r.counter == counter })
}

// gathers reports whether pods of the view were scattered by an earlier attempt.
func (a *solution) gathers(v *relaxedPod) bool {
	return slices.ContainsFunc(v.host, func(r topologyRule) bool { return r.what == follow && a.groups[r.counter] })
}

// hold keeps a party that found no seat from being scattered as long as some of its guests may give up a preference. A
// guest whose preferences leave it no domain has no lot.
func (a *solution) hold(now []*podClass, p affinityGroup, counter int) {
	if a.total[counter] > 0 || !slices.ContainsFunc(now, func(k *podClass) bool {
		return len(a.rest[k.id]) > 0 && !k.stays && a.level[k.id] < len(k.views)-1 &&
			a.currentRelaxation(k).followsOnHost(counter)
	}) {
		return
	}
	for _, l := range slices.Concat(p.hosts, p.guests) {
		l.left = 0
	}
}

// placeGroup places a party.
func (a *solution) placeGroup(p affinityGroup) {
	together := slices.ContainsFunc(p.guests, func(l *podBatch) bool { return l.whole })
	for {
		left := 0
		for _, l := range p.hosts {
			left += l.left
		}
		if together {
			left = min(left, 1)
		}
		table := a.shareForNode(p, max(1, left))
		if len(table) == 0 || len(p.hosts) > 0 && left == 0 || !a.placeTogether(table) {
			return
		}
	}
}

// shareForNode is what one node is to take of the party: of those that follow their part for each that is followed.
func (a *solution) shareForNode(p affinityGroup, hosts int) []batchTake {
	var out []batchTake
	for _, l := range p.hosts {
		if l.left > 0 {
			out = append(out, batchTake{lot: l, n: 1})
			break
		}
	}
	guests := false
	for _, l := range p.guests {
		if l.left > 0 {
			out = append(out, batchTake{lot: l, n: (l.left + hosts - 1) / hosts})
			guests = true
		}
	}
	if !guests {
		return nil
	}
	// who follows only others comes after those
	slices.SortStableFunc(out[min(1, len(p.hosts)):], func(x, y batchTake) int {
		return cmp.Compare(followsOthers(x.lot.view), followsOthers(y.lot.view))
	})
	return out
}

func followsOthers(v *relaxedPod) int {
	n := 0
	for _, r := range v.host {
		if r.what == follow && !r.self {
			n++
		}
	}
	return n
}

// placeTogether puts the takes together on the first host with room, else on the new node that is cheapest for them.
func (a *solution) placeTogether(table []batchTake) bool {
	for _, b := range a.bins {
		if b.offer != nil {
			continue
		}
		if d := a.draftOnExisting(b); d.takeAll(table) {
			for _, t := range d.takes {
				a.placePods(t.lot, b, t.alt, t.n)
			}
			return true
		}
	}
	if a.roomOnly {
		return false
	}
	for start := 0; start < len(a.w.catalog.pools); {
		end := start
		var best *nodeDraft
		price := math.Inf(1)
		for ; end < len(a.w.catalog.pools) && a.w.catalog.pools[end].Weight == a.w.catalog.pools[start].Weight; end++ {
			p := a.w.catalog.pools[end]
			for _, o := range p.forParties() {
				if a.w.offerCost(o) >= price {
					break
				}
				if a.spotAllowance(o, 1) == 0 || len(p.exceededLimits(a.usage[p.id], o.model.typ.Capacity)) > 0 {
					continue
				}
				if d := a.newDraft(o); d.takeAll(table) {
					best, price = d, a.w.offerCost(o)
				}
			}
		}
		if best != nil {
			before := a.opened
			a.openCopies(best.offer, best.takes, 1)
			return a.opened > before
		}
		start = end
	}
	return false
}

// forParties are the offers that a node for certain pods may be of, cheapest first.
func (p *pool) forParties() []*poolOffering {
	if len(p.reserved) == 0 || !p.mayBeOneType {
		return p.sale
	}
	return byPrice(slices.Concat(p.reserved, p.sale))
}

// draftOnExisting is a draft of what a host takes in addition.
func (a *solution) draftOnExisting(b *bin) *nodeDraft {
	d := &nodeDraft{a: a, host: b, room: slices.Clone(b.room)}
	d.site = hostSite{
		limit: func(i int) int {
			n := a.siteOf(b).limit(i)
			for _, t := range d.takes {
				n = min(n, t.lot.view.hostLimit(i))
			}
			return n
		},
		count: func(i int) int { return b.count[i] + d.count[i] },
		anti:  func(i int) int { return b.anti[i] + d.anti[i] },
		total: a.total, ports: slices.Clone(b.ports), disks: b.disks,
	}
	return d
}

// takeAll takes exactly the takes, or reports false.
func (d *nodeDraft) takeAll(table []batchTake) bool {
	for _, t := range table {
		if d.takePods(t.lot, t.n) != t.n {
			return false
		}
	}
	return true
}
