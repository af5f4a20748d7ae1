package controllers

import (
	"context"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/nodeclaim/interruption"
)

// PoolReader finds what a person wrote onto a pool. It may be repeated.
type PoolReader interface {
	// PoolAnnotations are the annotations of the NodePool itself, not of its template; none when it is gone.
	PoolAnnotations(ctx context.Context, name string) (map[string]string, error)
}

// RateQuota bounds how often something is done in a time.
type RateQuota interface {
	// TakeOne reports whether the thing of that name may be done. Asking again for the same thing gives the same answer
	// while it counts.
	TakeOne(ctx context.Context, thing string) (bool, error)
}

// decideRebalance decides about a rebalance recommendation, for whose pools and in which numbers somebody has to be
// asked.
func (i *Interruption) decideRebalance(ctx context.Context, n interruption.Notice,
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
	if may, err := mayBegin(ctx, i.Log, "count NodeClaim "+o.Claim.Name+" against the quota of rebalances"); err != nil || !may {
		return o, err
	}
	ok, err := i.Quota.TakeOne(ctx, o.Claim.UID)
	if err == nil && !ok {
		o = o.TooMany()
	}
	return o, err
}

// hasReplaceRequest reports whether there is a node to leave that somebody must look after now.
func (p *Provision) hasReplaceRequest(claims []cluster.Claim) bool {
	return slices.ContainsFunc(claims, func(c cluster.Claim) bool { return interruption.HasReplaceRequest(c, p.Now()) })
}

// deleteReplaced condemns the nodes that are to be left and can be: the plan, which was made without them, has room for
// their pods on nodes that are ready. Whether they must go before that is for the decision to say.
func (p *Provision) deleteReplaced(ctx context.Context, s cluster.Snapshot, going []interruption.PendingReplacement,
	decision plan.Plan) (condemned int, err error) {
	for _, g := range going {
		if g.Wait != "" {
			p.Log.Info("replacement postponed", "claim", g.Claim, "cause", string(g.Leave.Cause), "because", g.Wait)
		}
	}
	claims := map[string]cluster.Claim{}
	for _, c := range s.Claims {
		claims[c.Name] = c
	}
	for _, a := range interruption.Condemned(s, going, decision) {
		c, ok := claims[a.Claim]
		if !ok {
			continue
		}
		may, mayErr := mayBegin(ctx, p.Log, a.String())
		if mayErr != nil {
			return condemned, mayErr
		}
		if !may {
			continue
		}
		p.Log.Info(a.String())
		if a.Do == plan.SetDeadline {
			set := map[string]string{v1.AnnotationTerminationTimestamp: a.Deadline.UTC().Format(time.RFC3339)}
			if claims[a.Claim], err = p.Claims.AnnotateClaim(ctx, c, set); isConflict(err) {
				p.Log.Info("conflict, retrying in next pass", "claim", a.Claim, "because", err.Error())
				delete(claims, a.Claim)
			} else if err != nil {
				return condemned, err
			}
			continue
		}
		if err := p.Claims.DeleteClaim(ctx, c); err != nil {
			return condemned, err
		}
		p.sum.noteAction(a)
		condemned++
	}
	return condemned, nil
}
