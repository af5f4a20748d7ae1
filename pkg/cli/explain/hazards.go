package explain

import (
	"fmt"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/scheduling/binpack"
)

// mostLeftOut bounds the spot pools that are named.
const mostLeftOut = 10

// explainHazards names the spot pools that launches of the pool leave out because they are interrupted often.
func explainHazards(s cluster.Snapshot, p cluster.Pool) (why []string) {
	if s.Catalog.Spot == nil || s.Rules.PodInterruptionCostUSD <= 0 {
		return nil
	}
	hazards := spotpools.EstimateHazards(*s.Catalog.Spot)
	left := launch.HazardousPools(overlays.ByPool(s, binpack.ResolveOfferings(s))(p), p.Requirements)
	for k, o := range left {
		if k == mostLeftOut {
			return append(why, fmt.Sprintf("%d more spot pools are left out for their interruptions", len(left)-k))
		}
		why = append(why, fmt.Sprintf("%s in %s left out: %s; estimated at %.2g interruptions per node hour, half of the others have at most %.2g",
			o.Type, o.Zone, hazards.Seen(spotpools.Pool{Type: o.Type, Zone: o.Zone}), o.Hazard, o.Median))
	}
	return why
}
