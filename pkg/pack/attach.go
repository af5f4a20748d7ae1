package pack

import (
	"maps"
	"math"
	"slices"

	"joiner/pkg/cluster"
)

// volumes is what the pods of a kind attach to their node. Those that no other pod uses are counted, those that several pods
// use are known one by one, because a node attaches them once (spec core.md §2.6).
type volumes struct {
	own    []cluster.Volume // one for each driver, without id
	count  []int64          // of own: volumes that each pod brings along
	shared []cluster.Volume
}

// attached is what the CSI drivers of a node can still attach, and which of the volumes that waiting pods share are there.
type attached struct {
	free  map[string]int64 // by driver; those not named have no limit
	there map[cluster.Volume]bool
}

func (a attached) clone() attached {
	if a.free == nil {
		return a
	}
	return attached{maps.Clone(a.free), maps.Clone(a.there)}
}

// sharedVolumes are those that more than one pod names.
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
	maps.DeleteFunc(seen, func(_ cluster.Volume, again bool) bool { return !again })
	return seen
}

// volumesOf sorts the volumes of a pod into its own and shared ones.
func volumesOf(p *cluster.Pod, shared map[cluster.Volume]bool) volumes {
	var out volumes
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

// attach finds what the drivers of a node can attach beside the volumes of its pods. A node that reports no limit has none, and so
// has a node that is still to be made: only its driver can tell.
func attach(n *cluster.Node, pods []*cluster.Pod) attached {
	if n == nil || len(n.VolumeLimits) == 0 {
		return attached{}
	}
	a := attached{free: maps.Clone(n.VolumeLimits), there: map[cluster.Volume]bool{}}
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

// takes is how many pods with the volumes can be added.
func (a attached) takes(v volumes) int {
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

// add attaches the volumes of n pods.
func (a attached) add(v volumes, n int) {
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
