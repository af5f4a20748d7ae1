package notices

import (
	"context"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// decideRebalance decides about a rebalance recommendation, for whose pools and in which numbers somebody has to be
// asked.
func (c *Controller) decideRebalance(ctx context.Context, n interruption.Notice,
	claims []cluster.Claim) (interruption.Response, error) {
	o := interruption.DecideRebalance(n, claims, c.Rebalance, c.Now())
	if !o.Found {
		return o, nil
	}
	annotations, err := c.Pools.PoolAnnotations(ctx, o.Claim.Pool)
	if err != nil {
		return o, err
	}
	pool := interruption.RebalancePolicy{Choice: interruption.ChoiceFor(annotations, c.Rebalance.Choice),
		MinAge: c.Rebalance.MinAge}
	o = interruption.DecideRebalance(n, claims, pool, c.Now())
	if o.Leave.Cause == "" {
		return o, nil
	}
	if may, err := controllers.MayBegin(ctx, c.Log, "count NodeClaim "+o.Claim.Name+" against the quota of rebalances"); err != nil || !may {
		return o, err
	}
	ok, err := c.Quota.TakeOne(ctx, o.Claim.UID)
	if err == nil && !ok {
		o = o.TooMany()
	}
	return o, err
}
