package overlays

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// ApplyOverlays returns the types as the one pool has them under the overlays.
func ApplyOverlays(types []instancetypes.Type, pool cluster.Pool, overlays []cluster.Overlay) []instancetypes.Type {
	return applyInOrder(overlays, []PoolOfferings{{pool, types}}).overlaidTypes(0)
}
