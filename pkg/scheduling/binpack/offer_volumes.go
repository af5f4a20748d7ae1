package binpack

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/podclass"
)

// attachableOnNew is what a new node can attach. Volumes that no other pod uses count as room, so it is asked for only
// where pods share some.
func (o *poolOffering) attachableOnNew(cs *podclass.Classes) podclass.AttachableVolumes {
	if !cs.Sharing {
		return podclass.AttachableVolumes{}
	}
	return podclass.AttachableVolumes{Free: maps.Clone(o.model.volumes), There: map[cluster.Volume]bool{}}
}

// addSharedVolumes adds, to a vector, the volumes that pods of the loads share.
func addSharedVolumes(d podclass.Dims, to []int64, loads []podLoad) {
	var seen []cluster.Volume
	for _, l := range loads {
		for _, v := range l.view.Class.Volumes.Shared {
			if at := slices.Index(d, podclass.VolumesPrefix+v.Driver); at >= 0 && !slices.Contains(seen, v) {
				seen = append(seen, v)
				to[at]++
			}
		}
	}
}
