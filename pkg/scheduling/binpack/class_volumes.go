package binpack

import (
	"maps"
	"math"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// podVolumes is what the pods of a class attach to their node. Those that no other pod uses are counted, those that
// several pods use are known one by one, because a node attaches them once.
type podVolumes struct {
	own    []cluster.Volume // one for each driver, without id
	count  []int64          // of own: volumes that each pod brings along
	shared []cluster.Volume
}

// attachableVolumes is what the CSI drivers of a node can still attach, and which of the volumes that waiting pods
// share are there.
type attachableVolumes struct {
	free  map[string]int64 // by driver; those not named have no limit
	there map[cluster.Volume]bool
}

func (a attachableVolumes) clone() attachableVolumes {
	if a.free == nil {
		return a
	}
	return attachableVolumes{maps.Clone(a.free), maps.Clone(a.there)}
}

// sharedVolumes says of each volume that a pod names whether others name it too.
func sharedVolumes(pods []cluster.Pod) map[cluster.Volume]bool {
	var seen map[cluster.Volume]bool // true from the second time on
	for i := range pods {
		if pods[i].Terminal() {
			continue
		}
		for _, v := range slices.Compact(slices.Clone(pods[i].Volumes)) { // sorted
			if seen == nil {
				seen = map[cluster.Volume]bool{}
			}
			_, again := seen[v]
			seen[v] = again
		}
	}
	return seen
}

// volumesOf sorts the volumes of a pod into its own and shared ones.
func volumesOf(p *cluster.Pod, shared map[cluster.Volume]bool) podVolumes {
	var out podVolumes
	for _, v := range slices.Compact(slices.Clone(p.Volumes)) {
		if shared[v] {
			out.shared = append(out.shared, v)
			continue
		}
		if n := len(out.own); n == 0 || out.own[n-1].Driver != v.Driver {
			out.own, out.count = append(out.own, cluster.Volume{Driver: v.Driver}), append(out.count, 0)
		}
		out.count[len(out.count)-1]++
	}
	return out
}

// attachableOn finds what the drivers of a node can attach beside the volumes of its pods. A node that reports no limit
// has none, and so has a node that is still to be made: only its driver can tell.
func attachableOn(n *cluster.Node, pods []*cluster.Pod) attachableVolumes {
	if n == nil || len(n.VolumeLimits) == 0 {
		return attachableVolumes{}
	}
	a := attachableVolumes{free: maps.Clone(n.VolumeLimits), there: map[cluster.Volume]bool{}}
	for _, p := range pods {
		for _, v := range p.Volumes {
			if _, limited := a.free[v.Driver]; limited && !a.there[v] {
				a.there[v] = true
				a.free[v.Driver]--
			}
		}
	}
	return a
}

// maxPods is how many pods with the volumes can be added.
func (a attachableVolumes) maxPods(v podVolumes) int {
	if a.free == nil || len(v.own)+len(v.shared) == 0 {
		return math.MaxInt
	}
	first := map[string]int64{} // by driver: what the first of the pods brings for all of them
	for _, x := range v.shared {
		if left, limited := a.free[x.Driver]; limited && !a.there[x] {
			if first[x.Driver]++; first[x.Driver] > left {
				return 0
			}
		}
	}
	n := int64(math.MaxInt32)
	for i, x := range v.own {
		if left, limited := a.free[x.Driver]; limited {
			n = min(n, max(0, left-first[x.Driver])/v.count[i])
		}
	}
	return int(n)
}

// attachPods attaches the volumes of n pods.
func (a attachableVolumes) attachPods(v podVolumes, n int) {
	if a.free == nil {
		return
	}
	for i, x := range v.own {
		if _, limited := a.free[x.Driver]; limited {
			a.free[x.Driver] -= v.count[i] * int64(n)
		}
	}
	for _, x := range v.shared {
		if _, limited := a.free[x.Driver]; limited && !a.there[x] {
			a.there[x] = true
			a.free[x.Driver]--
		}
	}
}
