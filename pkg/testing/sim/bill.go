package sim

import (
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// bill tells what the cluster costs, and what it must cost.
type bill struct {
	*engine
	api     *apiServer
	catalog *catalog
	ec2     *ec2
	state   *productState
	volumes *volumes
}

// addCost adds what the cluster costs now, and what it must cost, to the hour.
func (b *bill) addCost(h *Hour) {
	const share = float64(lookEvery) / float64(time.Hour)
	h.Nodes, h.Pods, h.Waiting = 0, 0, 0
	for _, m := range b.ec2.livingInstances() {
		h.Nodes++
		h.USD += b.catalog.priceOf(m) * share
	}
	for _, p := range b.api.pods {
		if p.NodeName != "" {
			h.Pods++
		} else {
			h.Waiting++
		}
	}
	anew, bound := b.freshFleetPrice()
	h.AnewUSD += anew * share
	h.BoundUSD += bound * share
	for why, usd := range b.wastedPerNode(anew) {
		h.Wasted[why] += usd * share
	}
}

// freshFleetPrice returns the price of a fleet made just now for all pods that there are, as the packer makes it, and
// the bound that this proves for any fleet. USD per hour.
func (b *bill) freshFleetPrice() (usd, bound float64) {
	s := b.currentOfferings(cluster.Settings{MemoryOverhead: b.rules.MemoryOverhead})
	for _, p := range b.api.listPods() {
		if p.Owner == cluster.OwnerDaemonSet || p.Terminating() {
			continue
		}
		p.NodeName, p.Unscheduled, p.Nominated, p.Phase = "", true, "", "Pending"
		s.Pods = append(s.Pods, p)
	}
	p := binpack.Pods(s)
	return p.TotalPrice(), p.LowerBoundUSD
}

// What a day costs beyond a fleet made anew, by where it is wasted. Other words are those of disruption.NotDisrupted.
const (
	WasteStarting = "starting" // instances that are not in service yet
	WasteLeaving  = "leaving"  // nodes that are replaced, drained or ended
	WasteEmpty    = "empty"    // nodes in service with no pod that needs one
	WasteWaiting  = "waiting"  // below zero: pods without a node, which a fleet made anew would have room for
	WasteProposed = "proposed" // nodes that are about to be replaced
)

// wastedPerNode is by how much each node costs more than its part of the fleet made anew, which is what its pods are
// worth of that, summed up by why the node is there or stays. All of it together is what the cluster costs more than
// that fleet. USD per hour.
func (b *bill) wastedPerNode(anew float64) map[string]float64 {
	s := b.atOnce()
	sells := binpack.ResolveOfferings(s)
	part, on := b.podWorth(s, sells, anew)
	p, _ := disruption.Next(s, b.state.memory, sells)
	why := map[string]string{}
	for _, x := range p.NotDisrupted {
		why[x.Claim] = string(x.Reason)
	}
	out := map[string]float64{}
	for _, m := range b.ec2.livingInstances() {
		price, c, word := b.catalog.priceOf(m), b.api.byUID[m.owner], WasteProposed
		name := ""
		if m.node != nil {
			name = m.node.Name
		}
		switch {
		case c == nil || m.node == nil && c.Deleting.IsZero():
			word = WasteStarting
		case !c.Deleting.IsZero() || c.Annotations[disruption.AnnotationMark] != "":
			word = WasteLeaving
		case !b.api.inService(c):
			word = WasteStarting
		case on[name] == 0:
			word = WasteEmpty
		case why[c.Name] != "":
			word = why[c.Name]
		}
		out[word] += price - part[name]
		delete(part, name)
	}
	for _, name := range slices.Sorted(maps.Keys(part)) {
		out[WasteWaiting] -= part[name]
	}
	return out
}

// podWorth returns the worth of the pods on each node of a fleet made anew, and how many those are. Those without a
// node have the name "".
func (b *bill) podWorth(s cluster.Snapshot, sells binpack.Offerings, anew float64) (part map[string]float64,
	on map[string]int) {
	var cache binpack.OfferingCache
	worth := cache.WhatIf(s, sells).PodPrices(s, nil)
	part, on = map[string]float64{}, map[string]int{}
	sum := 0.0
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.Reschedulable() {
			sum += worth[p.Key()]
			part[p.NodeName] += worth[p.Key()]
			on[p.NodeName]++
		}
	}
	for name := range part { // each on its own, so the order does not matter
		part[name] *= anew / max(sum, 1e-9)
	}
	return part, on
}

// currentOfferings returns what can be launched now by these rules, for no pods and beside no nodes.
func (b *bill) currentOfferings(settings cluster.Settings) cluster.Snapshot {
	s := cluster.Snapshot{Now: b.toSecond(), Catalog: b.catalog.market, Rules: settings}
	b.api.readRest(&s)
	for i := range s.Classes {
		s.Classes[i].MemoryOverhead = b.rules.MemoryOverhead
	}
	return s
}

// atOnce is the cluster as it is, read in a moment.
func (b *bill) atOnce() cluster.Snapshot {
	s := b.currentOfferings(b.rules)
	for _, p := range b.api.listPods() {
		s.Pods = append(s.Pods, b.volumes.describe(p, p.UnreadClaims))
	}
	for _, name := range slices.Sorted(maps.Keys(b.api.nodes)) {
		s.Nodes = append(s.Nodes, b.volumes.describeNode(b.api.nodes[name].Node))
	}
	for _, name := range slices.Sorted(maps.Keys(b.api.claims)) {
		s.Claims = append(s.Claims, b.api.claims[name].Claim)
	}
	return s
}
