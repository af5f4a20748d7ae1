package binpack

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
)

// attachableOnNew is what a new node can attach. Volumes that no other pod uses count as room, so it is asked for only
// where pods share some.
func (o *poolOffering) attachableOnNew(cs *podClasses) attachableVolumes {
	if !cs.sharing {
		return attachableVolumes{}
	}
	return attachableVolumes{free: maps.Clone(o.model.volumes), there: map[cluster.Volume]bool{}}
}

// addSharedVolumes adds, to a vector, the volumes that pods of the loads share.
func addSharedVolumes(d resourceDims, to []int64, loads []podLoad) {
	var seen []cluster.Volume
	for _, l := range loads {
		for _, v := range l.view.class.disks.shared {
			if at := slices.Index(d, volumesPrefix+v.Driver); at >= 0 && !slices.Contains(seen, v) {
				seen = append(seen, v)
				to[at]++
			}
		}
	}
}
