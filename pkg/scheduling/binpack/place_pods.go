package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/podclass"
)

// placePods places the first n waiting pods of the batch in the bin.
func (a *solution) placePods(l *podBatch, b *bin, alt, n int) {
	k := l.view.Class
	pods := a.rest[k.ID][:n:n]
	a.rest[k.ID] = a.rest[k.ID][n:]
	l.left -= n
	a.recordLoad(podLoad{view: l.view, pins: l.pins, admit: l.admit, alt: alt, pods: pods}, b)
}

// recordLoad counts what goes into the bin, there and everywhere.
func (a *solution) recordLoad(l podLoad, b *bin) {
	k, n := l.view.Class, len(l.pods)
	a.addToBin(l, b)
	for _, c := range k.Matched {
		if a.w.topology.countsOn(c, b) {
			a.countPods(c, n, b)
		}
	}
	for _, r := range l.view.DomainRules {
		a.countRule(r, n, b)
	}
	for _, p := range l.pins {
		a.landed[classDomain{k.ID, p.Key, p.Domain}] += n
	}
}

// countPods counts n pods that the counter selects.
func (a *solution) countPods(counter, n int, b *bin) {
	key := a.w.topology.counters[counter].key
	if key == podclass.LabelHost {
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
func (a *solution) countRule(r podclass.TopologyRule, n int, b *bin) {
	d, known := a.w.topology.domainIDs[r.Key][b.domainOf(r.Key)]
	switch {
	case known && r.Kind == podclass.Spread && r.Required:
		a.tally.even[r.Counter][d] += n
	case r.Kind != podclass.Avoid || !r.Required:
	case known:
		a.tally.anti[r.Counter][d] += n
	default:
		for _, d := range a.w.topology.mayLand(b, r.Key) {
			a.tally.anti[r.Counter][d] += n
		}
	}
}

// addToBin counts what goes into the bin in the bin alone.
func (a *solution) addToBin(l podLoad, b *bin) {
	k, n := l.view.Class, len(l.pods)
	b.paid = 0
	for i, x := range k.Need {
		b.room[i] -= x * int64(n)
	}
	b.ports = append(b.ports, k.Pod.HostPorts...)
	b.disks.AttachPods(k.Volumes, n)
	if b.offer != nil {
		b.open, _ = narrowOpenLabels(b.open, l.admit.Alternatives[l.alt])
	}
	b.load = append(b.load, l)
	for _, c := range k.Matched {
		if a.w.topology.counters[c].key == podclass.LabelHost {
			b.count[c] += n
		}
	}
	for _, r := range l.view.HostRules {
		if r.Kind == podclass.Avoid && r.Required {
			b.anti[r.Counter] += n
		}
	}
}

// takeOut takes the last n pods of the bin's load i out of it, and says why.
func (a *solution) takeOut(b *bin, i, n int, why string) {
	l := &b.load[i]
	k := l.view.Class
	keep := len(l.pods) - n
	b.paid = 0
	a.rest[k.ID] = append(slices.Clone(a.rest[k.ID]), l.pods[keep:]...)
	for j, x := range k.Need {
		b.room[j] += x * int64(n)
	}
	for _, c := range k.Matched {
		key := a.w.topology.counters[c].key
		d, ok := a.w.topology.domainIDs[key][b.domainOf(key)]
		if ok && key != podclass.LabelHost && a.w.topology.countsOn(c, b) {
			a.tally.count[c][d] -= n
		}
	}
	a.blocked[k.ID][why] = true
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
				n = min(n, l.view.HostLimit(c))
			}
			return n
		},
		total: a.total, ports: b.ports, disks: b.disks,
	}
}
