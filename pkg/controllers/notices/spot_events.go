package notices

import (
	"context"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/spotpools"
	"joiner.sh/pkg/model/cluster"
	model "joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// noteSpotEvent notes for the record of spot pools that one of our spot nodes is interrupted, or should be left. A note
// that cannot be made changes what nodes cost later, and nothing else.
func (i *Controller) noteSpotEvent(ctx context.Context, n interruption.Notice, c cluster.Claim) {
	kinds := map[interruption.Kind]model.Kind{interruption.Spot: model.Interruption,
		interruption.Rebalance: model.Recommendation}
	kind, counts := kinds[n.Kind]
	pool, spot := spotpools.PoolOf(c)
	if i.Spot == nil || !counts || !spot {
		return
	}
	if may, err := controllers.MayWrite(ctx); err != nil || !may {
		return
	}
	err := i.Spot.NoteSpotEvents(ctx, []model.Event{{ID: string(kind) + " " + n.Instance, Kind: kind, Pool: pool,
		At: i.Now()}})
	if err != nil {
		i.Log.Warn("a notice is missing in the record of spot pools", "instance", n.Instance, "error", err)
	}
}
