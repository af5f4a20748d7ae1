package status

import (
	"cmp"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// mostSpotPools bounds the spot pools of a picture.
const mostSpotPools = 20

// SpotPool is a pool of spot capacity in which nodes run, or in which something happened.
type SpotPool struct {
	Type  string `json:"type"`
	Zone  string `json:"zone"`
	Nodes int    `json:"nodes"` // of the cluster, now
	// estimated interruptions per node hour
	Hazard float64 `json:"hazard"`
	Seen   string  `json:"seen"` // what the estimate is made of
}

// spotPools lists what has been learned of spot pools, those that are interrupted most often first, and says how many
// more there are. Nothing is learned where no setting says what an interruption costs.
func spotPools(s cluster.Snapshot) (list []SpotPool, more int) {
	if s.Catalog.Spot == nil {
		return nil, 0
	}
	nodes := map[spotpools.Pool]int{}
	for _, h := range s.StateNodes() {
		labels := h.Labels()
		if capacityType(labels) == instancetypes.Spot {
			nodes[spotpools.Pool{Type: labels[instancetypes.LabelType], Zone: labels[instancetypes.LabelZone]}]++
		}
	}
	for _, c := range slices.Concat(s.Catalog.Spot.Own, s.Catalog.Spot.Others) {
		if c.Interruptions+c.Recommendations+c.Refusals > 0 {
			nodes[c.Pool] += 0
		}
	}
	hazards := spotpools.EstimateHazards(*s.Catalog.Spot)
	for p, n := range nodes {
		list = append(list, SpotPool{Type: p.Type, Zone: p.Zone, Nodes: n, Hazard: hazards.Of(p),
			Seen: hazards.Seen(p).String()})
	}
	slices.SortFunc(list, func(a, b SpotPool) int {
		return cmp.Or(cmp.Compare(b.Hazard, a.Hazard), cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	more = max(0, len(list)-mostSpotPools)
	return list[:len(list)-more], more
}
