package packing

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// affinityGroup is a group of pods that want to be near each other on nodes.
type affinityGroup struct {
	hosts  []*PodBatch // whom the others follow, and who follow nobody
	guests []*PodBatch
}

// groupPlacer places groups of pods that want to be near each other on nodes.
type groupPlacer struct {
	a  *Solution
	pk *packing
}

// placeScattered places the groups that an earlier solution scattered: everybody on one node where all follow each
// other, else as many nodes as it takes, each with one pod that is followed and its part of those that follow.
func (gp groupPlacer) placeScattered(now []*podclass.Class, batches []*PodBatch) {
	counters := make([]int, 0, len(gp.pk.learned.groups))
	for c := range gp.pk.learned.groups {
		counters = append(counters, c)
	}
	slices.Sort(counters)
	for _, c := range counters {
		var p affinityGroup
		for _, batch := range batches {
			switch {
			case batch.Left == 0 || batch.View.Class.Stays:
			case batch.View.FollowsOnHost(c):
				p.guests = append(p.guests, batch)
			case slices.Contains(batch.View.Class.Matched, c):
				p.hosts = append(p.hosts, batch)
			}
		}
		if gp.a.Total[c] > 0 {
			continue
		}
		if len(p.guests) > 0 {
			gp.placeGroup(p)
		}
		gp.hold(now, p, c)
	}
}

// placeGroup places a party.
func (gp groupPlacer) placeGroup(p affinityGroup) {
	together := slices.ContainsFunc(p.guests, func(batch *PodBatch) bool { return batch.whole })
	for {
		left := 0
		for _, batch := range p.hosts {
			left += batch.Left
		}
		if together {
			left = min(left, 1)
		}
		table := p.shareForNode(max(1, left))
		if len(table) == 0 || len(p.hosts) > 0 && left == 0 || !gp.placeTogether(table) {
			return
		}
	}
}

// shareForNode returns one node's share of the group: of the pods that follow, their part for each that is followed.
func (p affinityGroup) shareForNode(hosts int) []BatchTake {
	var out []BatchTake
	for _, batch := range p.hosts {
		if batch.Left > 0 {
			out = append(out, BatchTake{Batch: batch, N: 1})
			break
		}
	}
	guests := false
	for _, batch := range p.guests {
		if batch.Left > 0 {
			out = append(out, BatchTake{Batch: batch, N: (batch.Left + hosts - 1) / hosts})
			guests = true
		}
	}
	if !guests {
		return nil
	}
	// who follows only others comes after those
	slices.SortStableFunc(out[min(1, len(p.hosts)):], func(x, y BatchTake) int {
		return cmp.Compare(followsOthers(x.Batch.View), followsOthers(y.Batch.View))
	})
	return out
}

func followsOthers(pod *podclass.RelaxedPod) int {
	n := 0
	for _, r := range pod.HostRules {
		if r.Kind == podclass.Follow && !r.Self {
			n++
		}
	}
	return n
}

// placeTogether puts the takes together on the first host with room, else on the new node that is cheapest for them.
func (gp groupPlacer) placeTogether(table []BatchTake) bool {
	for _, b := range gp.a.Bins {
		if b.Offering != nil {
			continue
		}
		if d := draftOnExisting(gp.a, b); d.takeAll(table) {
			for _, t := range d.takes {
				gp.a.placePods(t.Batch, b, t.Alt, t.N)
			}
			return true
		}
	}
	if gp.pk.roomOnly {
		return false
	}
	for _, pools := range gp.a.W.Catalog.ByWeight() {
		if best := gp.cheapestNew(pools, table); best != nil {
			before := gp.a.Used.Opened
			gp.a.openCopies(best.offering, best.takes, 1)
			return gp.a.Used.Opened > before
		}
	}
	return false
}

// cheapestNew is the cheapest new node of the pools that takes all of the takes, nil for none.
func (gp groupPlacer) cheapestNew(pools []*capacity.OfferingPool, table []BatchTake) (best *nodeDraft) {
	price := math.Inf(1)
	for _, p := range pools {
		for _, o := range p.ForParties() {
			if gp.a.OfferingCost(o) >= price {
				break
			}
			if gp.a.Used.spotAllowance(o, 1) == 0 || gp.a.Used.ExceedsLimits(p, o.InstanceType.Type.Capacity) {
				continue
			}
			if d := newDraft(gp.a, o); d.takeAll(table) {
				best, price = d, gp.a.OfferingCost(o)
			}
		}
	}
	return best
}

// hold keeps a party that found no seat from being scattered as long as some of its guests may give up a preference. A
// guest whose preferences leave it no domain has no batch.
func (gp groupPlacer) hold(now []*podclass.Class, p affinityGroup, counter int) {
	if gp.a.Total[counter] > 0 || !slices.ContainsFunc(now, func(class *podclass.Class) bool {
		return len(gp.a.Rest[class.ID]) > 0 && !class.Stays && gp.pk.level[class.ID] < len(class.Views)-1 &&
			gp.pk.currentRelaxation(class).FollowsOnHost(counter)
	}) {
		return
	}
	for _, batch := range slices.Concat(p.hosts, p.guests) {
		batch.Left = 0
	}
}

// gathers reports whether pods of the view were scattered by an earlier solution.
func (pk *packing) gathers(pod *podclass.RelaxedPod) bool {
	return slices.ContainsFunc(pod.HostRules,
		func(r podclass.TopologyRule) bool { return r.Kind == podclass.Follow && pk.learned.groups[r.Counter] })
}
