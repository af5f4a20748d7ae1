package podclass

import (
	"maps"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// Volumes holds the volumes that the pods of a class attach to their node. Those that no other pod uses are counted,
// those that several pods use are known one by one, because a node attaches them once.
type Volumes struct {
	Own    []cluster.Volume // one for each driver, without id
	Count  []int64          // of own: volumes that each pod brings along
	Shared []cluster.Volume // each named by other pods too; nil for none
}

// AttachableVolumes holds the number of volumes that the CSI drivers of a node can still attach, and which of the
// volumes that waiting pods share are there.
type AttachableVolumes struct {
	Free  map[string]int64        // by driver; those not named have no limit
	There map[cluster.Volume]bool // attached, of drivers with a limit; sharing one takes nothing of Free
}

// Clone is a copy that may be changed.
func (a AttachableVolumes) Clone() AttachableVolumes {
	if a.Free == nil {
		return a
	}
	return AttachableVolumes{maps.Clone(a.Free), maps.Clone(a.There)}
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
func volumesOf(p *cluster.Pod, shared map[cluster.Volume]bool) Volumes {
	var out Volumes
	for _, v := range slices.Compact(slices.Clone(p.Volumes)) {
		if shared[v] {
			out.Shared = append(out.Shared, v)
			continue
		}
		if n := len(out.Own); n == 0 || out.Own[n-1].Driver != v.Driver {
			out.Own, out.Count = append(out.Own, cluster.Volume{Driver: v.Driver}), append(out.Count, 0)
		}
		out.Count[len(out.Count)-1]++
	}
	return out
}

// volumesPrefix begins the names of dimensions that count volumes of a CSI driver.
const volumesPrefix = "volumes of "

// UnlimitedVolumes is more than pods of one node have.
const UnlimitedVolumes = math.MaxUint16

// SetVolumes sets, in a vector, the dimensions that count volumes. A driver that is not named has no limit.
func (d Dims) SetVolumes(of []int64, free map[string]int64) {
	for i, name := range d {
		if driver, counts := strings.CutPrefix(name, volumesPrefix); counts {
			n, limited := free[driver]
			if of[i] = max(0, n); !limited {
				of[i] = UnlimitedVolumes
			}
		}
	}
}

// VolumesOf is the dimension that counts volumes of the CSI driver, -1 for none.
func (d Dims) VolumesOf(driver string) int { return slices.Index(d, volumesPrefix+driver) }

// addVolumes adds, to a vector, the volumes that each pod with these brings along.
func (d Dims) addVolumes(to []int64, disks Volumes) {
	for i, v := range disks.Own {
		if at := d.VolumesOf(v.Driver); at >= 0 {
			to[at] += disks.Count[i]
		}
	}
}

// AttachableOn finds what a node can attach beside the volumes of its pods.
func AttachableOn(limits map[string]int64, pods []*cluster.Pod) AttachableVolumes {
	if len(limits) == 0 {
		return AttachableVolumes{}
	}
	a := AttachableVolumes{Free: maps.Clone(limits), There: map[cluster.Volume]bool{}}
	for _, p := range pods {
		for _, v := range p.Volumes {
			if _, limited := a.Free[v.Driver]; limited && !a.There[v] {
				a.There[v] = true
				a.Free[v.Driver]--
			}
		}
	}
	return a
}

// MaxPods returns the number of pods with the volumes that can be added.
func (a AttachableVolumes) MaxPods(v Volumes) int {
	if a.Free == nil || len(v.Own)+len(v.Shared) == 0 {
		return math.MaxInt
	}
	first := map[string]int64{} // by driver: what the first of the pods brings for all of them
	for _, x := range v.Shared {
		if left, limited := a.Free[x.Driver]; limited && !a.There[x] {
			if first[x.Driver]++; first[x.Driver] > left {
				return 0
			}
		}
	}
	n := int64(math.MaxInt32)
	for i, x := range v.Own {
		if left, limited := a.Free[x.Driver]; limited {
			n = min(n, max(0, left-first[x.Driver])/v.Count[i])
		}
	}
	return int(n)
}

// AttachPods attaches the volumes of n pods.
func (a AttachableVolumes) AttachPods(v Volumes, n int) {
	if a.Free == nil {
		return
	}
	for i, x := range v.Own {
		if _, limited := a.Free[x.Driver]; limited {
			a.Free[x.Driver] -= v.Count[i] * int64(n)
		}
	}
	for _, x := range v.Shared {
		if _, limited := a.Free[x.Driver]; limited && !a.There[x] {
			a.There[x] = true
			a.Free[x.Driver]--
		}
	}
}
