package binpack

import (
	"container/heap"
	"fmt"
	"math"
	"slices"

	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// nodeOpener makes new nodes for pods that no node has room for.
type nodeOpener struct{ a *solution }

// openNodes makes new nodes for the lots, in the heaviest pools that take them.
func (op *nodeOpener) openNodes(lots []*podBatch) {
	if slices.ContainsFunc(lots, func(l *podBatch) bool { return l.view.kind.stays }) {
		lots = slices.DeleteFunc(slices.Clone(lots), func(l *podBatch) bool { return l.view.kind.stays })
	}
	if op.a.w.worth == nil {
		op.a.w.worth = op.a.w.findShadowPrices(func(k *podClass) int { return len(op.a.rest[k.id]) })
	}
	op.openAll(lots)
	if op.a.used.spotCeiling > 0 && slices.ContainsFunc(lots, func(l *podBatch) bool { return l.left > 0 }) {
		before := op.a.used.spotCeiling
		op.a.used.spotCeiling = 0 // it never leaves a pod without a home
		op.openAll(lots)
		op.a.used.spotCeiling = before
	}
}

// openTier makes new nodes in pools of one weight. Each time it takes the offer with the lowest price for what it would
// hold, where a pod is worth what it costs at least anywhere. It returns true when another try may place more.
func (op *nodeOpener) openTier(pools []*pool, lots []*podBatch) bool {
	q := op.scoreCandidates(op.candidateOffers(pools, lots), lots)
	heap.Init(q)
	opened, limited := 0, false
	for q.Len() > 0 {
		c := heap.Pop(q).(*candidate)
		if c.order == nil {
			op.arrangeLots(c, lots)
		}
		takes, value := op.fillNode(c)
		if value <= 0 {
			continue
		}
		// Scores only get worse while pods are placed, so an old score that is not the best needs no second look.
		if c.score = op.a.offerCost(c.offer) / value; q.Len() > 0 && candidateLess((*q)[0], c) {
			heap.Push(q, c)
			continue
		}
		n, full := op.a.openCopies(c.offer, takes, math.MaxInt)
		opened += n
		limited = limited || full
		if op.a.used.atMost() {
			return false
		}
		if !full {
			heap.Push(q, c)
		}
	}
	return limited && opened > 0 || loosenBatches(lots)
}

// loosenBatches lets lots that found no node for all their pods together use one that holds some of them.
func loosenBatches(lots []*podBatch) bool {
	found := false
	for _, l := range lots {
		if l.whole && l.left > 0 {
			l.whole, found = false, true
		}
	}
	return found
}

// batchTake is n pods of a lot on a new node.
type batchTake struct {
	lot    *podBatch
	alt, n int
}

// nodeDraft is a new node while it is being filled.
type nodeDraft struct {
	a     *solution
	offer *poolOffering
	host  *bin // instead of an offer: room that there is
	room  []int64
	count map[int]int
	anti  map[int]int
	open  requirements.Set
	site  hostSite
	takes []batchTake
	value float64
	near  bool // some lot could join once others are there
}

func (a *solution) newDraft(o *poolOffering) *nodeDraft {
	d := &nodeDraft{a: a, offer: o, room: slices.Clone(o.room), open: o.model.open}
	d.site = hostSite{
		limit: func(i int) int {
			n := math.MaxInt32
			for _, t := range d.takes {
				n = min(n, t.lot.view.hostLimit(i))
			}
			return n
		},
		count: func(i int) int { return d.count[i] }, anti: func(i int) int { return d.anti[i] }, total: a.total,
		ports: slices.Clone(o.ports),
	}
	return d
}

// takePods puts up to n more pods of the lot on the node, and returns how many.
func (d *nodeDraft) takePods(l *podBatch, n int) int {
	have := -1
	for i, t := range d.takes {
		if t.lot == l {
			have = i
			n = min(n, l.left-t.n)
		}
	}
	if n = min(n, l.left, fitCount(l.view.kind.need, d.room)); n <= 0 || have >= 0 && l.whole {
		return 0
	}
	if n = min(n, d.a.w.topology.maxPodsByHostRules(l.view, d.site)); n == 0 || l.whole && n < l.left {
		d.near = d.near || len(l.view.host) > 0
		return 0
	}
	var alt int
	if d.host != nil {
		alt = l.admit.alternativeOn(d.host)
	} else {
		alt = l.admit.firstAlternativeOn(d.offer, d.open)
	}
	if alt < 0 || have >= 0 && d.takes[have].alt != alt {
		return 0
	}
	d.addTake(l, alt, n)
	d.value += float64(n) * l.value
	if have >= 0 {
		d.takes[have].n += n
	} else {
		d.takes = append(d.takes, batchTake{l, alt, n})
	}
	return n
}

// fillNode tells what a new node of the candidate's offer would hold of what is left, and what that is worth.
func (op *nodeOpener) fillNode(c *candidate) ([]batchTake, float64) {
	d := op.a.newDraft(c.offer)
	for _, l := range c.order {
		d.takePods(l, l.left)
	}
	if d.near {
		for _, l := range c.order {
			d.takePods(l, l.left)
		}
	}
	return d.takes, d.value
}

func (d *nodeDraft) addTake(l *podBatch, alt, n int) {
	k := l.view.kind
	for i, x := range k.need {
		d.room[i] -= x * int64(n)
	}
	d.site.ports = append(d.site.ports, k.pod.HostPorts...)
	d.open, _ = narrowOpenLabels(d.open, l.admit.alternative[alt])
	for _, c := range k.matched {
		if d.a.w.topology.counters[c].key == labelHost {
			if d.count == nil {
				d.count = map[int]int{}
			}
			d.count[c] += n
		}
	}
	for _, r := range l.view.host {
		if r.what == avoid && r.required {
			if d.anti == nil {
				d.anti = map[int]int{}
			}
			d.anti[r.counter] += n
		}
	}
}

// openLabels are the labels of the model's nodes that the pods of a node decide: those for which the pool's author or
// the instance type leaves several values, but for those in which offers differ, for a node is of one offer.
func (m *poolInstanceType) openLabels() requirements.Set {
	var s requirements.Set
	for _, key := range m.pool.open {
		if r, ok := m.labelValues(key); ok {
			s = s.And(r)
		}
	}
	for _, r := range m.typ.Requirements.All() {
		if _, single := r.Single(); single || len(r.Values) == 0 || perOffer(r.Key) {
			continue
		}
		r, _ = m.labelValues(r.Key)
		if _, single := r.Single(); !single {
			s = s.And(r)
		}
	}
	return s
}

// openCopies makes nodes like this one, up to most, while there are pods for more. It returns how many, and whether the
// pool's limits or its minValues stopped it.
func (a *solution) openCopies(o *poolOffering, takes []batchTake, most int) (opened int, full bool) {
	p := o.model.pool
	times := most
	for _, t := range takes {
		a.w.faults.planted(StageOpen, t.lot.view.kind, p)
		times = min(times, t.lot.left/t.n)
		if slices.ContainsFunc(t.lot.view.host, func(r topologyRule) bool { return r.what == follow }) {
			times = 1
		}
	}
	if times = a.used.spotAllowance(o, times); times == 0 {
		return 0, true
	}
	takes, capacity, low := a.shrinkForMinValues(o, takes)
	if takes == nil {
		return 0, true
	}
	for range times {
		if a.used.exceedsLimits(p, capacity) {
			return opened, true
		}
		if a.used.atMost() {
			return opened, false
		}
		b := a.newBin(o, capacity)
		b.name = fmt.Sprintf("new-%05d", a.used.opened)
		b.low = low
		for _, t := range takes {
			a.placePods(t.lot, b, t.alt, t.n)
		}
		a.bins = append(a.bins, b)
		a.used.opened++
		opened++
		if id, amount := o.slot(); amount > 0 {
			a.used.slots[id] -= amount
		}
		if a.used.spotCeiling > 0 {
			a.used.spot.add(o.Offer, o.model.typ.Capacity.CPU, 1)
		}
		a.used.pools[p.id].list = a.used.pools[p.id].list.Add(capacity)
		a.used.pools[p.id].nodes++
	}
	return opened, false
}

// newBin is an empty new node that takes the capacity of its pool's limits.
func (a *solution) newBin(o *poolOffering, capacity resources.List) *bin {
	return &bin{
		offer: o, takes: capacity, taints: o.model.pool.Taints, open: o.model.open, room: slices.Clone(o.room),
		ports: slices.Clone(o.ports), count: make([]int, len(a.w.topology.counters)), anti: make([]int, len(a.w.topology.counters)),
	}
}
