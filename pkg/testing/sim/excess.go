package sim

import (
	"maps"
	"slices"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
	"joiner/pkg/scheduling/binpack"
)

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
func (w *world) wastedPerNode(anew float64) map[string]float64 {
	s := w.atOnce()
	sells := binpack.ResolveOfferings(s)
	part, on := w.podWorth(s, sells, anew)
	p, _ := disruption.Next(s, w.memory, sells)
	why := map[string]string{}
	for _, x := range p.NotDisrupted {
		why[x.Claim] = string(x.Reason)
	}
	out := map[string]float64{}
	for _, m := range w.livingInstances() {
		price, c, word := w.priceOf(m), w.byUID[m.owner], WasteProposed
		name := ""
		if m.node != nil {
			name = m.node.Name
		}
		switch {
		case c == nil || m.node == nil && c.Deleting.IsZero():
			word = WasteStarting
		case !c.Deleting.IsZero() || c.Annotations[disruption.AnnotationMark] != "":
			word = WasteLeaving
		case !w.inService(c):
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

// podWorth is what the pods on each node are worth of a fleet made anew, and how many those are. Those without a node
// have the name "".
func (w *world) podWorth(s cluster.Snapshot, sells binpack.Offerings, anew float64) (part map[string]float64,
	on map[string]int) {
	var d binpack.OfferingCache
	worth := d.WhatIf(s, sells).PodPrices(s)
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

// priceOf is what the instance costs, USD per hour: EC2 bills from running on.
func (w *world) priceOf(m *machine) (usd float64) {
	if m.State == "pending" {
		return 0
	}
	for _, o := range w.types[m.Type].Offerings {
		if o.Zone == m.Zone && o.CapacityType == m.CapacityType {
			usd += o.Price
		}
	}
	return usd
}

// currentOfferings is what can be launched now by these rules, for no pods and beside no nodes.
func (w *world) currentOfferings(r cluster.Settings) cluster.Snapshot {
	s := cluster.Snapshot{Now: w.toSecond(), Catalog: w.market, Rules: r}
	w.readRest(&s)
	for i := range s.Classes {
		s.Classes[i].MemoryOverhead = w.rules.MemoryOverhead
	}
	return s
}

// atOnce is the cluster as it is, read in a moment.
func (w *world) atOnce() cluster.Snapshot {
	s := w.currentOfferings(w.rules)
	for _, p := range w.listPods() {
		s.Pods = append(s.Pods, w.disks.describe(p, p.UnreadClaims))
	}
	for _, name := range slices.Sorted(maps.Keys(w.nodes)) {
		s.Nodes = append(s.Nodes, w.disks.describeNode(w.nodes[name].Node))
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		s.Claims = append(s.Claims, w.claims[name].Claim)
	}
	return s
}
