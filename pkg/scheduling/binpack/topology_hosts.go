package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// hostSite is what the host rules of a view need to know of a bin.
type hostSite struct {
	trusted     bool // whom to be near to was settled before
	count, anti func(counter int) int
	limit       func(counter int) int // most pods of the counter that pods there bear; nil for no pods there
	total       []int
	ports       []cluster.HostPort
	disks       podclass.AttachableVolumes
}

// maxPodsByHostRules is how many pods of the view the host rules allow in addition on the site, whichever of its pods
// comes last: the scheduler takes them in an order of its own.
func (top *topologyCounts) maxPodsByHostRules(v *podclass.RelaxedPod, s hostSite) int {
	n := math.MaxInt32
	for _, c := range v.Class.Matched {
		if top.counters[c].key != podclass.LabelHost {
			continue
		}
		if s.anti(c) > 0 {
			return 0
		}
		if top.counters[c].limited && s.limit != nil {
			n = min(n, max(0, s.limit(c)-s.count(c)))
		}
	}
	for _, r := range v.HostRules {
		have := s.count(r.Counter)
		switch {
		case r.Kind == podclass.Spread && r.Self:
			n = min(n, max(0, r.MaxSkew-have))
		case r.Kind == podclass.Spread && have > r.MaxSkew, r.Kind == podclass.Avoid && have > 0:
			return 0
		case r.Kind == podclass.Avoid && r.Self:
			n = min(n, 1)
		case r.Kind == podclass.Follow && !s.trusted && have == 0 && (!r.Self || s.total[r.Counter] > 0):
			return 0
		}
	}
	if len(v.Class.Pod.HostPorts) > 0 {
		n = min(n, 1)
		if capacity.PortsConflict(v.Class.Pod.HostPorts, s.ports) {
			return 0
		}
	}
	return min(n, s.disks.MaxPods(v.Class.Volumes))
}

// hasHostRules reports whether rules may bound how many pods of the view one node takes.
func (top *topologyCounts) hasHostRules(v *podclass.RelaxedPod) bool {
	return len(v.HostRules)+len(v.Class.Pod.HostPorts) > 0 ||
		slices.ContainsFunc(v.Class.Matched, func(c int) bool { return top.counters[c].key == podclass.LabelHost })
}

// noneLeft counts no pods, as on a node that is new.
func noneLeft(int) int { return 0 }
