package notices

import (
	"context"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// decideRebalance decides about a rebalance recommendation, for whose pools and in which numbers somebody has to be
// asked.
func (i *Controller) decideRebalance(ctx context.Context, n interruption.Notice,
	claims []cluster.Claim) (interruption.Outcome, error) {
	o := interruption.DecideRebalance(n, claims, i.Rebalance, i.Now())
	if !o.Found {
		return o, nil
	}
	annotations, err := i.Pools.PoolAnnotations(ctx, o.Claim.Pool)
	if err != nil {
		return o, err
	}
	pool := interruption.RebalancePolicy{Choice: interruption.ChoiceFor(annotations, i.Rebalance.Choice),
		MinAge: i.Rebalance.MinAge}
	o = interruption.DecideRebalance(n, claims, pool, i.Now())
	if o.Leave.Cause == "" {
		return o, nil
	}
	if may, err := controllers.MayBegin(ctx, i.Log, "count NodeClaim "+o.Claim.Name+" against the quota of rebalances"); err != nil || !may {
		return o, err
	}
	ok, err := i.Quota.TakeOne(ctx, o.Claim.UID)
	if err == nil && !ok {
		o = o.TooMany()
	}
	return o, err
}
