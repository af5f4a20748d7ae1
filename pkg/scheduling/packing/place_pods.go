package packing

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// placePods places the first n waiting pods of the batch in the bin.
func (a *Solution) placePods(l *PodBatch, b *capacity.Bin, alt, n int) {
	k := l.View.Class
	pods := a.Rest[k.ID][:n:n]
	a.Rest[k.ID] = a.Rest[k.ID][n:]
	l.Left -= n
	a.recordLoad(capacity.PodLoad{Pod: l.View, Pins: l.Pins, Admission: l.Admit, Alt: alt, Pods: pods}, b)
}

// recordLoad counts what goes into the bin, there and everywhere.
func (a *Solution) recordLoad(l capacity.PodLoad, b *capacity.Bin) {
	k, n := l.Pod.Class, len(l.Pods)
	a.AddToBin(l, b)
	for _, c := range k.Matched {
		if a.W.Topology.CountsOn(c, b) {
			a.countPods(c, n, b)
		}
	}
	for _, r := range l.Pod.DomainRules {
		a.countRule(r, n, b)
	}
	for _, p := range l.Pins {
		a.landed[classDomain{k.ID, p.Key, p.Domain}] += n
	}
}

// countPods counts n pods that the counter selects.
func (a *Solution) countPods(counter, n int, b *capacity.Bin) {
	key := a.W.Topology.Counters[counter].Key
	if key == podclass.LabelHost {
		a.Total[counter] += n
		return
	}
	if d, ok := a.W.Topology.DomainIDs[key][b.DomainOf(key)]; ok {
		a.Tally.Count[counter][d] += n
		return
	}
	for _, d := range a.W.Topology.MayLand(b, key) {
		a.Tally.May[counter][d] += n
	}
}

// countRule counts n pods that carry the rule over domains.
func (a *Solution) countRule(r podclass.TopologyRule, n int, b *capacity.Bin) {
	d, known := a.W.Topology.DomainIDs[r.Key][b.DomainOf(r.Key)]
	switch {
	case known && r.Kind == podclass.Spread && r.Required:
		a.Tally.Even[r.Counter][d] += n
	case r.Kind != podclass.Avoid || !r.Required:
	case known:
		a.Tally.Anti[r.Counter][d] += n
	default:
		for _, d := range a.W.Topology.MayLand(b, r.Key) {
			a.Tally.Anti[r.Counter][d] += n
		}
	}
}

// AddToBin counts what goes into the bin in the bin alone.
func (a *Solution) AddToBin(l capacity.PodLoad, b *capacity.Bin) {
	k, n := l.Pod.Class, len(l.Pods)
	b.Paid = 0
	for i, x := range k.Need {
		b.Room[i] -= x * int64(n)
	}
	b.Ports = append(b.Ports, k.Pod.HostPorts...)
	b.Disks.AttachPods(k.Volumes, n)
	if b.Offering != nil {
		b.Open, _ = capacity.NarrowOpenLabels(b.Open, l.Admission.Alternatives[l.Alt])
	}
	b.Load = append(b.Load, l)
	for _, c := range k.Matched {
		if a.W.Topology.Counters[c].Key == podclass.LabelHost {
			b.Count[c] += n
		}
	}
	for _, r := range l.Pod.HostRules {
		if r.Kind == podclass.Avoid && r.Required {
			b.Anti[r.Counter] += n
		}
	}
}

// TakeOut takes the last n pods of the bin's load i out of it, and says why.
func (a *Solution) TakeOut(b *capacity.Bin, i, n int, why string) {
	l := &b.Load[i]
	k := l.Pod.Class
	keep := len(l.Pods) - n
	b.Paid = 0
	a.Rest[k.ID] = append(slices.Clone(a.Rest[k.ID]), l.Pods[keep:]...)
	for j, x := range k.Need {
		b.Room[j] += x * int64(n)
	}
	for _, c := range k.Matched {
		key := a.W.Topology.Counters[c].Key
		d, ok := a.W.Topology.DomainIDs[key][b.DomainOf(key)]
		if ok && key != podclass.LabelHost && a.W.Topology.CountsOn(c, b) {
			a.Tally.Count[c][d] -= n
		}
	}
	a.Blocked[k.ID][why] = true
	if l.Pods = l.Pods[:keep]; keep == 0 {
		b.Load = slices.Delete(b.Load, i, i+1)
	}
}

// siteOf is the bin as host rules see it.
func (a *Solution) siteOf(b *capacity.Bin) podtopology.HostSite {
	return podtopology.HostSite{
		Count: func(c int) int { return b.Count[c] }, Anti: func(c int) int { return b.Anti[c] },
		Limit: func(c int) int {
			n := math.MaxInt32
			for _, l := range b.Load {
				n = min(n, l.Pod.HostLimit(c))
			}
			return n
		},
		Total: a.Total, Ports: b.Ports, Disks: b.Disks,
	}
}
