package binpack

import (
	"maps"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
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

// clone is a copy that may be changed.
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

// volumesPrefix begins the names of dimensions that count volumes of a CSI driver.
const volumesPrefix = "volumes of "

// unlimitedVolumes is more than pods of one node have.
const unlimitedVolumes = 1 << 16

// limitedDrivers are the CSI drivers of waiting pods' volumes that may attach only so many to a node, as dimensions.
func (cs *podClasses) limitedDrivers() (dims []string) {
	for _, k := range cs.list {
		for _, v := range slices.Concat(k.disks.own, k.disks.shared) {
			limited := cs.limits.Limits(v.Driver)
			if name := volumesPrefix + v.Driver; (limited || v.Driver == instancetypes.DriverEBS) &&
				!slices.Contains(dims, name) {
				dims = append(dims, name)
			}
		}
	}
	return dims
}

// setVolumes sets, in a vector, the dimensions that count volumes. A driver that is not named has no limit.
func (d resourceDims) setVolumes(of []int64, free map[string]int64) {
	for i, name := range d {
		if driver, counts := strings.CutPrefix(name, volumesPrefix); counts {
			n, limited := free[driver]
			if of[i] = max(0, n); !limited {
				of[i] = unlimitedVolumes
			}
		}
	}
}

// addVolumes adds, to a vector, the volumes that each pod with these brings along.
func (d resourceDims) addVolumes(to []int64, disks podVolumes) {
	for i, v := range disks.own {
		if at := slices.Index(d, volumesPrefix+v.Driver); at >= 0 {
			to[at] += disks.count[i]
		}
	}
}

// attachableOn finds what a node can attach beside the volumes of its pods.
func attachableOn(limits map[string]int64, pods []*cluster.Pod) attachableVolumes {
	if len(limits) == 0 {
		return attachableVolumes{}
	}
	a := attachableVolumes{free: maps.Clone(limits), there: map[cluster.Volume]bool{}}
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
