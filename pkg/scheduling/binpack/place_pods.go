package binpack

import (
	"math"
	"slices"
)

// placePods places the first n waiting pods of the batch in the bin.
func (a *solution) placePods(l *podBatch, b *bin, alt, n int) {
	k := l.view.class
	pods := a.rest[k.id][:n:n]
	a.rest[k.id] = a.rest[k.id][n:]
	l.left -= n
	a.recordLoad(podLoad{view: l.view, pins: l.pins, admit: l.admit, alt: alt, pods: pods}, b)
}

// recordLoad counts what goes into the bin, there and everywhere.
func (a *solution) recordLoad(l podLoad, b *bin) {
	k, n := l.view.class, len(l.pods)
	a.addToBin(l, b)
	for _, c := range k.matched {
		if a.w.topology.countsOn(c, b) {
			a.countPods(c, n, b)
		}
	}
	for _, r := range l.view.other {
		a.countRule(r, n, b)
	}
	for _, p := range l.pins {
		a.landed[classDomain{k.id, p.key, p.domain}] += n
	}
}

// countPods counts n pods that the counter selects.
func (a *solution) countPods(counter, n int, b *bin) {
	key := a.w.topology.counters[counter].key
	if key == labelHost {
		a.total[counter] += n
		return
	}
	if d, ok := a.w.topology.domainIDs[key][b.domainOf(key)]; ok {
		a.tally.count[counter][d] += n
		return
	}
	for _, d := range a.w.topology.mayLand(b, key) {
		a.tally.may[counter][d] += n
	}
}

// countRule counts n pods that carry the rule over domains.
func (a *solution) countRule(r topologyRule, n int, b *bin) {
	d, known := a.w.topology.domainIDs[r.key][b.domainOf(r.key)]
	switch {
	case known && r.what == spread && r.required:
		a.tally.even[r.counter][d] += n
	case r.what != avoid || !r.required:
	case known:
		a.tally.anti[r.counter][d] += n
	default:
		for _, d := range a.w.topology.mayLand(b, r.key) {
			a.tally.anti[r.counter][d] += n
		}
	}
}

// addToBin counts what goes into the bin in the bin alone.
func (a *solution) addToBin(l podLoad, b *bin) {
	k, n := l.view.class, len(l.pods)
	b.paid = 0
	for i, x := range k.need {
		b.room[i] -= x * int64(n)
	}
	b.ports = append(b.ports, k.pod.HostPorts...)
	b.disks.attachPods(k.disks, n)
	if b.offer != nil {
		b.open, _ = narrowOpenLabels(b.open, l.admit.alternative[l.alt])
	}
	b.load = append(b.load, l)
	for _, c := range k.matched {
		if a.w.topology.counters[c].key == labelHost {
			b.count[c] += n
		}
	}
	for _, r := range l.view.host {
		if r.what == avoid && r.required {
			b.anti[r.counter] += n
		}
	}
}

// takeOut takes the last n pods of the bin's load i out of it, and says why.
func (a *solution) takeOut(b *bin, i, n int, why string) {
	l := &b.load[i]
	k := l.view.class
	keep := len(l.pods) - n
	b.paid = 0
	a.rest[k.id] = append(slices.Clone(a.rest[k.id]), l.pods[keep:]...)
	for j, x := range k.need {
		b.room[j] += x * int64(n)
	}
	for _, c := range k.matched {
		key := a.w.topology.counters[c].key
		d, ok := a.w.topology.domainIDs[key][b.domainOf(key)]
		if ok && key != labelHost && a.w.topology.countsOn(c, b) {
			a.tally.count[c][d] -= n
		}
	}
	a.blocked[k.id][why] = true
	if l.pods = l.pods[:keep]; keep == 0 {
		b.load = slices.Delete(b.load, i, i+1)
	}
}

func (a *solution) siteOf(b *bin) hostSite {
	return hostSite{
		count: func(c int) int { return b.count[c] }, anti: func(c int) int { return b.anti[c] },
		limit: func(c int) int {
			n := math.MaxInt32
			for _, l := range b.load {
				n = min(n, l.view.hostLimit(c))
			}
			return n
		},
		total: a.total, ports: b.ports, disks: b.disks,
	}
}
