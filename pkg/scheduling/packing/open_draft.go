package packing

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// BatchTake is n pods of a batch on a new node.
type BatchTake struct {
	Batch  *PodBatch
	Alt, N int
}

// NodeDraft is a new node while it is being filled.
type NodeDraft struct {
	a     *Solution
	offer *capacity.Offering
	host  *capacity.Bin // instead of an offer: room that there is
	room  []int64
	count map[int]int
	anti  map[int]int
	open  requirements.Set
	site  podtopology.HostSite
	Takes []BatchTake
	value float64
	near  bool // some batch could join once others are there
}

// NewDraft is a draft of a new node of the offer.
func NewDraft(a *Solution, o *capacity.Offering) *NodeDraft {
	d := &NodeDraft{a: a, offer: o, room: slices.Clone(o.Room), open: o.InstanceType.Open}
	d.site = podtopology.HostSite{
		Limit: func(i int) int {
			n := math.MaxInt32
			for _, t := range d.Takes {
				n = min(n, t.Batch.View.HostLimit(i))
			}
			return n
		},
		Count: func(i int) int { return d.count[i] }, Anti: func(i int) int { return d.anti[i] }, Total: a.Total,
		Ports: slices.Clone(o.Ports), Disks: o.AttachableOnNew(a.W.Classes),
	}
	return d
}

// draftOfCandidate is a draft of a node of the candidate.
func draftOfCandidate(a *Solution, c *Candidate) *NodeDraft {
	if c.host != nil {
		return draftOnExisting(a, c.host)
	}
	return NewDraft(a, c.Offer)
}

// draftOnExisting is a draft of what a host takes in addition.
func draftOnExisting(a *Solution, b *capacity.Bin) *NodeDraft {
	d := &NodeDraft{a: a, host: b, room: slices.Clone(b.Room)}
	d.site = podtopology.HostSite{
		Limit: func(i int) int {
			n := a.SiteOf(b).Limit(i)
			for _, t := range d.Takes {
				n = min(n, t.Batch.View.HostLimit(i))
			}
			return n
		},
		Count: func(i int) int { return b.Count[i] + d.count[i] },
		Anti:  func(i int) int { return b.Anti[i] + d.anti[i] },
		Total: a.Total, Ports: slices.Clone(b.Ports), Disks: b.Disks.Clone(),
	}
	return d
}

// TakePods puts up to n more pods of the batch on the node, and returns how many.
func (d *NodeDraft) TakePods(l *PodBatch, n int) int {
	if d.offer != nil && slices.Contains(l.refused, d.offer.InstanceType.Pool) {
		return 0
	}
	have := -1
	for i, t := range d.Takes {
		if t.Batch == l {
			have = i
			n = min(n, l.Left-t.N)
		}
	}
	if n = min(n, l.Left, capacity.FitCount(l.View.Class.Need, d.room)); n <= 0 || have >= 0 && l.whole {
		return 0
	}
	if n = min(n, d.a.W.Topology.MaxPodsByHostRules(l.View, d.site)); n == 0 || l.whole && n < l.Left {
		d.near = d.near || len(l.View.HostRules) > 0
		return 0
	}
	var alt int
	if d.host != nil {
		alt = d.host.AlternativeFor(l.Admit)
	} else {
		alt = d.offer.FirstAlternativeBeside(l.Admit, d.open)
	}
	if alt < 0 || have >= 0 && d.Takes[have].Alt != alt {
		return 0
	}
	d.addTake(l, alt, n)
	d.value += float64(n) * l.Value
	if have >= 0 {
		d.Takes[have].N += n
	} else {
		d.Takes = append(d.Takes, BatchTake{l, alt, n})
	}
	return n
}

// takeAll takes exactly the takes, or reports false.
func (d *NodeDraft) takeAll(table []BatchTake) bool {
	for _, t := range table {
		if d.TakePods(t.Batch, t.N) != t.N {
			return false
		}
	}
	return true
}

func (d *NodeDraft) addTake(l *PodBatch, alt, n int) {
	k := l.View.Class
	for i, x := range k.Need {
		d.room[i] -= x * int64(n)
	}
	d.site.Ports = append(d.site.Ports, k.Pod.HostPorts...)
	d.site.Disks.AttachPods(k.Volumes, n)
	d.open, _ = capacity.NarrowOpenLabels(d.open, l.Admit.Alternatives[alt])
	for _, c := range k.Matched {
		if d.a.W.Topology.Counters[c].Key == podclass.LabelHost {
			if d.count == nil {
				d.count = map[int]int{}
			}
			d.count[c] += n
		}
	}
	for _, r := range l.View.HostRules {
		if r.Kind == podclass.Avoid && r.Required {
			if d.anti == nil {
				d.anti = map[int]int{}
			}
			d.anti[r.Counter] += n
		}
	}
}

// fillNode tells what a new node of the candidate's offer would hold of what is left, and what that is worth.
func (op NodeOpener) fillNode(c *Candidate) ([]BatchTake, float64) {
	d := NewDraft(op.A, c.Offer)
	for _, l := range c.order {
		d.TakePods(l, l.Left)
	}
	if d.near {
		for _, l := range c.order {
			d.TakePods(l, l.Left)
		}
	}
	return d.Takes, d.value
}
