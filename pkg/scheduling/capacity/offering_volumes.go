package capacity

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/podclass"
)

// AttachableOnNew returns the volumes that a new node can attach. Volumes that no other pod uses count as room, so it
// is asked for only where pods share some.
func (o *Offering) AttachableOnNew(cs *podclass.Classes) podclass.AttachableVolumes {
	if !cs.Sharing {
		return podclass.AttachableVolumes{}
	}
	return podclass.AttachableVolumes{Free: maps.Clone(o.InstanceType.Volumes), There: map[cluster.Volume]bool{}}
}

// AddSharedVolumes adds, to a vector, the volumes that pods of the loads share.
func AddSharedVolumes(d podclass.Dims, to []int64, loads []PodLoad) {
	var seen []cluster.Volume
	for _, l := range loads {
		for _, v := range l.Pod.Class.Volumes.Shared {
			if at := d.VolumesOf(v.Driver); at >= 0 && !slices.Contains(seen, v) {
				seen = append(seen, v)
				to[at]++
			}
		}
	}
}
