package binpack

import (
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// hostSite is what the host rules of a view need to know of a bin.
type hostSite struct {
	trusted     bool // whom to be near to was settled before
	count, anti func(counter int) int
	limit       func(counter int) int // most pods of the counter that pods there bear; nil for no pods there
	total       []int
	ports       []cluster.HostPort
	disks       attachableVolumes
}

// maxPodsByHostRules is how many pods of the view the host rules allow in addition on the site, whichever of its pods
// comes last: the scheduler takes them in an order of its own.
func (top *topologyCounts) maxPodsByHostRules(v *relaxedPod, s hostSite) int {
	n := math.MaxInt32
	for _, c := range v.class.matched {
		if top.counters[c].key != labelHost {
			continue
		}
		if s.anti(c) > 0 {
			return 0
		}
		if top.counters[c].limited && s.limit != nil {
			n = min(n, max(0, s.limit(c)-s.count(c)))
		}
	}
	for _, r := range v.host {
		have := s.count(r.counter)
		switch {
		case r.what == spread && r.self:
			n = min(n, max(0, r.maxSkew-have))
		case r.what == spread && have > r.maxSkew, r.what == avoid && have > 0:
			return 0
		case r.what == avoid && r.self:
			n = min(n, 1)
		case r.what == follow && !s.trusted && have == 0 && (!r.self || s.total[r.counter] > 0):
			return 0
		}
	}
	if len(v.class.pod.HostPorts) > 0 {
		n = min(n, 1)
		if portsConflict(v.class.pod.HostPorts, s.ports) {
			return 0
		}
	}
	return min(n, s.disks.maxPods(v.class.disks))
}

// hasHostRules reports whether rules may bound how many pods of the view one node takes.
func (top *topologyCounts) hasHostRules(v *relaxedPod) bool {
	return len(v.host)+len(v.class.pod.HostPorts) > 0 ||
		slices.ContainsFunc(v.class.matched, func(c int) bool { return top.counters[c].key == labelHost })
}

func noneLeft(int) int { return 0 }
