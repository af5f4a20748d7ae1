package packing

import (
	"slices"

	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// arrivals counts, of the pods of a solution, those that can come in some order: each after one that it has to be near
// to. Pods that can only wait for each other are not counted.
type arrivals struct {
	top    *podtopology.Counts
	domain [][]int                 // by counter and domain
	host   map[*capacity.Bin][]int // by counter of hostnames
	total  []int                   // the same, on all nodes
}

// comer is a load that may come to its bin.
type comer struct {
	to   *capacity.Bin
	load capacity.PodLoad
}

// arrivals counts the pods of the solution that can come; nil where no pod has to be near another.
func (s *Solution) arrivals() *arrivals {
	var left []comer
	follows := false
	for _, b := range s.Bins {
		for _, l := range b.Load {
			left = append(left, comer{b, l})
			follows = follows || len(l.Pod.Class.RequiredAffinityRules()) > 0
		}
	}
	if !follows {
		return nil
	}
	ar := &arrivals{top: s.W.Topology, domain: s.W.Topology.Tally.Clone().Count, host: map[*capacity.Bin][]int{},
		total: slices.Clone(s.W.Topology.Total)}
	for i, b := range s.Bins {
		ar.host[b] = make([]int, len(ar.total))
		if i < len(s.W.Nodes.Hosts) {
			copy(ar.host[b], s.W.Nodes.Hosts[i].Count)
		}
	}
	for n := -1; n != len(left); {
		n = len(left)
		var wait []comer
		for _, c := range left {
			if !ar.letIn(c) {
				wait = append(wait, c)
			}
		}
		left = wait
	}
	return ar
}

// letIn counts the load if it can come now.
func (ar *arrivals) letIn(c comer) bool {
	rules, first, near := c.load.Pod.Class.RequiredAffinityRules(), true, true
	for _, r := range rules {
		anywhere := ar.total[r.Counter] > 0 ||
			slices.ContainsFunc(ar.domain[r.Counter], func(n int) bool { return n > 0 })
		first = first && topology.AffinityAllows(0, anywhere, r.Self)
		near = near && !ar.lack(c.to, r)
	}
	if !near && !first && !c.load.Settled {
		return false
	}
	n := len(c.load.Pods)
	for _, i := range c.load.Pod.Class.Matched {
		if !ar.top.CountsOn(i, c.to) {
			continue
		}
		key := ar.top.Counters[i].Key
		if key == podclass.LabelHost {
			ar.host[c.to][i] += n
			ar.total[i] += n
		} else if d, ok := ar.top.DomainIDs[key][c.to.DomainOf(key)]; ok {
			ar.domain[i][d] += n
		}
	}
	return true
}

// lack reports whether the rule wants pods near of which none comes to the bin's domain.
func (ar *arrivals) lack(b *capacity.Bin, r podclass.TopologyRule) bool {
	if ar == nil || r.Kind != podclass.Follow || !r.Required {
		return false
	}
	if r.Key == podclass.LabelHost {
		return ar.host[b][r.Counter] == 0
	}
	d, ok := ar.top.DomainIDs[r.Key][b.DomainOf(r.Key)]
	return ok && ar.domain[r.Counter][d] == 0
}
