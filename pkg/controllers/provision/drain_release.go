package provision

import (
	"context"
	"sync"

	api "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// pendingDrains holds the drains that wait for what a pass launches. They begin while the pass still writes down what
// EC2 has accepted, which takes seconds where hundreds of nodes are replaced. It may be used by several goroutines.
type pendingDrains struct {
	p *Controller

	mu      sync.Mutex
	waiting *interruption.WaitingDrains
}

// noteAccepted is told by a launcher which of the claims EC2 started instances for. The claims are those of the
// launches, in their order.
func (d *pendingDrains) noteAccepted(claims []cluster.Claim, launches []plan.Launch) func(context.Context,
	[]cluster.Claim) {
	of := map[string]plan.Launch{}
	for i, c := range claims {
		of[c.Name] = launches[i]
	}
	return func(ctx context.Context, started []cluster.Claim) {
		launched := lists.Of(started, func(c cluster.Claim) plan.Launch { return of[c.Name] })
		d.releaseReady(ctx, launched)
	}
}

// releaseReady lets those drains begin whose pods all have a place once these launches were accepted too.
func (d *pendingDrains) releaseReady(ctx context.Context, launched []plan.Launch) {
	d.mu.Lock()
	all := d.waiting.AcceptLaunches(launched)
	d.mu.Unlock()
	d.p.releaseDrains(ctx, all)
}

// releaseDrains lets the drains of these claims begin: their replacements are on their way, whatever lifecycle wrote
// onto the claims meanwhile.
func (c *Controller) releaseDrains(ctx context.Context, claims []cluster.Claim) {
	controllers.ForEach(parallelLaunches, claims, func(_ int, claim cluster.Claim) {
		c.TryAction(ctx, &c.failed, "drain of NodeClaim "+claim.Name, drainAction(claim), func() error {
			claim.Version = ""
			_, err := c.Claims.AnnotateClaim(ctx, claim, map[string]string{api.AnnotationDrainAfterReplacement: ""})
			return err
		})
	})
	if len(claims) > 0 {
		c.Log.Info("replacements launched, releasing drains", "claims", len(claims))
	}
}
