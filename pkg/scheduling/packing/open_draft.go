package packing

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// NodeOpener makes new nodes for pods that no node has room for.
type NodeOpener struct {
	A      *Solution // that gets the nodes
	Prices PodPrices // of pods on new nodes
}

// Candidate is an offering with the batches it may hold, best use of its room first.
type Candidate struct {
	index    int
	Offering *capacity.Offering // of a new node; nil for a host
	host     *capacity.Bin      // instead of an offering: room that there is
	order    []*PodBatch
	score    float64 // USD per hour for each USD per hour of value

	room  []float64 // of the offering, in units of prices
	items []int32   // what may be on it, of the guide's items
	fits  []int     // how many of each
	basis cover.Basis
}

// BatchTake is n pods of a batch on a new node.
type BatchTake struct {
	Batch *PodBatch // whose pods they are
	Alt   int       // index of the alternative of Batch.Admit that holds on the node
	N     int       // how many
}

// LoadOf returns the load that the pods, n of the batch, are on the node.
func (t BatchTake) LoadOf(pods []string) capacity.PodLoad {
	return capacity.PodLoad{Pod: t.Batch.View, Pins: t.Batch.Pins, Admission: t.Batch.Admit, Alt: t.Alt, Pods: pods}
}

// nodeDraft is a new node while it is being filled.
type nodeDraft struct {
	a        *Solution
	offering *capacity.Offering
	host     *capacity.Bin // instead of an offering: room that there is
	room     []int64
	count    map[int]int
	anti     map[int]int
	open     requirements.Set
	site     podtopology.HostSite
	takes    []BatchTake
	value    float64
	near     bool // some batch could join once others are there
}

// newDraft is a draft of a new node of the offering.
func newDraft(s *Solution, o *capacity.Offering) *nodeDraft {
	d := &nodeDraft{a: s, offering: o, room: slices.Clone(o.Room), open: o.InstanceType.Open}
	d.site = podtopology.HostSite{
		Limit: func(i int) int {
			n := math.MaxInt32
			for _, t := range d.takes {
				n = min(n, t.Batch.View.HostLimit(i))
			}
			return n
		},
		Count: func(i int) int { return d.count[i] }, Anti: func(i int) int { return d.anti[i] }, Total: s.Total,
		Ports: slices.Clip(o.Ports), Disks: o.AttachableOnNew(s.W.Classes),
	}
	return d
}

// TakeAllLeft tells what a new node of the offering would hold of what is left of the batches; false when that is not
// all.
func (op NodeOpener) TakeAllLeft(o *capacity.Offering, batches []*PodBatch) (takes []BatchTake, all bool) {
	d := newDraft(op.A, o)
	for _, batch := range batches {
		if batch.Left > 0 && d.takePods(batch, batch.Left) < batch.Left {
			return nil, false
		}
	}
	return d.takes, true
}

// draftOfCandidate is a draft of a node of the candidate.
func draftOfCandidate(s *Solution, c *Candidate) *nodeDraft {
	if c.host != nil {
		return draftOnExisting(s, c.host)
	}
	return newDraft(s, c.Offering)
}

// draftOnExisting is a draft of what a host takes in addition.
func draftOnExisting(s *Solution, b *capacity.Bin) *nodeDraft {
	d := &nodeDraft{a: s, host: b, room: slices.Clone(b.Room)}
	d.site = podtopology.HostSite{
		Limit: func(i int) int {
			n := s.siteOf(b).Limit(i)
			for _, t := range d.takes {
				n = min(n, t.Batch.View.HostLimit(i))
			}
			return n
		},
		Count: func(i int) int { return b.Count[i] + d.count[i] },
		Anti:  func(i int) int { return b.Anti[i] + d.anti[i] },
		Total: s.Total, Ports: slices.Clip(b.Ports), Disks: b.Disks.Clone(),
	}
	return d
}

// takePods puts up to n more pods of the batch on the node, and returns how many.
func (d *nodeDraft) takePods(batch *PodBatch, n int) int {
	if d.offering != nil && slices.Contains(batch.refused, d.offering.InstanceType.Pool) {
		return 0
	}
	have := -1
	for i, t := range d.takes {
		if t.Batch == batch {
			have = i
			n = min(n, batch.Left-t.N)
		}
	}
	if n = min(n, batch.Left, capacity.FitCount(batch.View.Class.Need, d.room)); n <= 0 || have >= 0 && batch.whole {
		return 0
	}
	if n = min(n, d.a.W.Topology.MaxPodsByHostRules(batch.View, d.site)); n == 0 || batch.whole && n < batch.Left {
		d.near = d.near || len(batch.View.HostRules) > 0
		return 0
	}
	var alt int
	if d.host != nil {
		alt = d.host.AlternativeFor(batch.Admit)
	} else {
		alt = d.offering.FirstAlternativeBeside(batch.Admit, d.open)
	}
	if alt < 0 || have >= 0 && d.takes[have].Alt != alt {
		return 0
	}
	d.addTake(batch, alt, n)
	d.value += float64(n) * batch.Value
	if have >= 0 {
		d.takes[have].N += n
	} else {
		d.takes = append(d.takes, BatchTake{batch, alt, n})
	}
	return n
}

// takeAll takes exactly the takes, or reports false.
func (d *nodeDraft) takeAll(table []BatchTake) bool {
	for _, t := range table {
		if d.takePods(t.Batch, t.N) != t.N {
			return false
		}
	}
	return true
}

func (d *nodeDraft) addTake(batch *PodBatch, alt, n int) {
	class := batch.View.Class
	for i, x := range class.Need {
		d.room[i] -= x * int64(n)
	}
	d.site.Ports = append(d.site.Ports, class.Pod.HostPorts...)
	d.site.Disks.AttachPods(class.Volumes, n)
	d.open, _ = capacity.NarrowOpenLabels(d.open, batch.Admit.Alternatives[alt])
	for _, c := range class.Matched {
		if d.a.W.Topology.Counters[c].Key == podclass.LabelHost {
			if d.count == nil {
				d.count = map[int]int{}
			}
			d.count[c] += n
		}
	}
	for _, r := range batch.View.HostRules {
		if r.Kind == podclass.Avoid && r.Required {
			if d.anti == nil {
				d.anti = map[int]int{}
			}
			d.anti[r.Counter] += n
		}
	}
}

// fillNode tells what a new node of the candidate's offering would hold of what is left, and what that is worth.
func (op NodeOpener) fillNode(c *Candidate) ([]BatchTake, float64) {
	d := newDraft(op.A, c.Offering)
	for _, batch := range c.order {
		d.takePods(batch, batch.Left)
	}
	if d.near {
		for _, batch := range c.order {
			d.takePods(batch, batch.Left)
		}
	}
	return d.takes, d.value
}
