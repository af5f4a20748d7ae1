package packing

import (
	"math"
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// placePods places the first n waiting pods of the batch in the bin.
func (s *Solution) placePods(batch *PodBatch, b *capacity.Bin, alt, n int) {
	class := batch.View.Class
	pods := s.Rest[class.ID][:n:n]
	s.Rest[class.ID] = s.Rest[class.ID][n:]
	batch.Left -= n
	s.recordLoad(BatchTake{batch, alt, n}.LoadOf(pods), b)
}

// recordLoad counts what goes into the bin, there and everywhere.
func (s *Solution) recordLoad(l capacity.PodLoad, b *capacity.Bin) {
	class, n := l.Pod.Class, len(l.Pods)
	s.AddToBin(l, b)
	for _, c := range class.Matched {
		if s.W.Topology.CountsOn(c, b) {
			s.countPods(c, n, b)
		}
	}
	for _, r := range l.Pod.DomainRules {
		s.countRule(r, n, b)
	}
	for _, p := range l.Pins {
		s.landed[classDomain{class.ID, p.Key, p.Domain}] += n
	}
}

// countPods counts n pods that the counter selects.
func (s *Solution) countPods(counter, n int, b *capacity.Bin) {
	key := s.W.Topology.Counters[counter].Key
	if key == podclass.LabelHost {
		s.Total[counter] += n
		return
	}
	if d, ok := s.W.Topology.DomainIDs[key][b.DomainOf(key)]; ok {
		s.Tally.Count[counter][d] += n
		return
	}
	for _, d := range s.W.Topology.MayLand(b, key) {
		s.Tally.May[counter][d] += n
	}
}

// countRule counts n pods that carry the rule over domains.
func (s *Solution) countRule(r podclass.TopologyRule, n int, b *capacity.Bin) {
	d, known := s.W.Topology.DomainIDs[r.Key][b.DomainOf(r.Key)]
	switch {
	case known && r.Kind == podclass.Spread && r.Required:
		s.Tally.Even[r.Counter][d] += n
	case r.Kind != podclass.Avoid || !r.Required:
	case known:
		s.Tally.Anti[r.Counter][d] += n
	default:
		for _, d := range s.W.Topology.MayLand(b, r.Key) {
			s.Tally.Anti[r.Counter][d] += n
		}
	}
}

// AddToBin counts what goes into the bin in the bin alone.
func (s *Solution) AddToBin(l capacity.PodLoad, b *capacity.Bin) {
	class, n := l.Pod.Class, len(l.Pods)
	b.Paid = 0
	for i, x := range class.Need {
		b.Room[i] -= x * int64(n)
	}
	b.Ports = append(b.Ports, class.Pod.HostPorts...)
	b.Disks.AttachPods(class.Volumes, n)
	if b.Offering != nil {
		b.Open, _ = capacity.NarrowOpenLabels(b.Open, l.Admission.Alternatives[l.Alt])
	}
	b.Load = append(b.Load, l)
	for _, c := range class.Matched {
		if s.W.Topology.Counters[c].Key == podclass.LabelHost {
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
func (s *Solution) TakeOut(b *capacity.Bin, i, n int, why string) {
	l := &b.Load[i]
	class := l.Pod.Class
	keep := len(l.Pods) - n
	b.Paid = 0
	s.Rest[class.ID] = append(slices.Clone(s.Rest[class.ID]), l.Pods[keep:]...)
	for j, x := range class.Need {
		b.Room[j] += x * int64(n)
	}
	for _, c := range class.Matched {
		key := s.W.Topology.Counters[c].Key
		d, ok := s.W.Topology.DomainIDs[key][b.DomainOf(key)]
		if ok && key != podclass.LabelHost && s.W.Topology.CountsOn(c, b) {
			s.Tally.Count[c][d] -= n
		}
	}
	s.Blocked[class.ID][why] = true
	if l.Pods = l.Pods[:keep]; keep == 0 {
		b.Load = slices.Delete(b.Load, i, i+1)
	}
}

// siteOf is the bin as host rules see it.
func (s *Solution) siteOf(b *capacity.Bin) podtopology.HostSite {
	return podtopology.HostSite{
		Count: func(c int) int { return b.Count[c] }, Anti: func(c int) int { return b.Anti[c] },
		Limit: func(c int) int {
			n := math.MaxInt32
			for _, l := range b.Load {
				n = min(n, l.Pod.HostLimit(c))
			}
			return n
		},
		Total: s.Total, Ports: b.Ports, Disks: b.Disks,
	}
}
