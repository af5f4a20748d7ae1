package podtopology

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/podclass"
)

// HostSite holds the facts about a bin that the host rules of a view need.
type HostSite struct {
	Trusted     bool                  // whom to be near to was settled before
	Count, Anti func(counter int) int // nil for no pods there
	Limit       func(counter int) int // most pods of the counter that pods there bear; nil for no pods there
	Total       []int
	Ports       []cluster.HostPort
	Disks       podclass.AttachableVolumes
}

func countWith(count func(counter int) int, counter int) int {
	if count == nil {
		return 0
	}
	return count(counter)
}

// MaxPodsByHostRules returns the number of pods of the view that the host rules allow in addition on the site. Any of
// its pods may come last: the scheduler takes them in an order of its own.
func (top *Counts) MaxPodsByHostRules(pod *podclass.RelaxedPod, s HostSite) int {
	n := math.MaxInt32
	for _, c := range pod.Class.Matched {
		if top.Counters[c].Key != podclass.LabelHost {
			continue
		}
		if countWith(s.Anti, c) > 0 {
			return 0
		}
		if top.Counters[c].limited && s.Limit != nil {
			n = min(n, max(0, s.Limit(c)-countWith(s.Count, c)))
		}
	}
	for _, r := range pod.HostRules {
		have := countWith(s.Count, r.Counter)
		switch {
		case r.Kind == podclass.Spread:
			n = min(n, topology.Spread{MaxSkew: r.MaxSkew, Self: r.Self}.Room(have, 0)) // one with none can always come
		case r.Kind == podclass.Avoid && have > 0:
			return 0
		case r.Kind == podclass.Avoid && r.Self:
			n = min(n, 1)
		case r.Kind == podclass.Follow && !s.Trusted &&
			!topology.AffinityAllows(have, s.Total[r.Counter] > 0, r.Self):
			return 0
		}
	}
	if len(pod.Class.Pod.HostPorts) > 0 {
		n = min(n, 1)
		if cluster.PortsConflict(pod.Class.Pod.HostPorts, s.Ports) {
			return 0
		}
	}
	return min(n, s.Disks.MaxPods(pod.Class.Volumes))
}

// HasHostRules reports whether rules may bound how many pods of the view one node takes.
func (top *Counts) HasHostRules(pod *podclass.RelaxedPod) bool {
	return len(pod.HostRules)+len(pod.Class.Pod.HostPorts) > 0 ||
		slices.ContainsFunc(pod.Class.Matched, func(c int) bool { return top.Counters[c].Key == podclass.LabelHost })
}
