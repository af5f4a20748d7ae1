package control

import (
	"context"
	"slices"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
	"joiner/pkg/plan"
)

// PoolReader finds what a person wrote onto a pool. It may be repeated.
type PoolReader interface {
	// PoolAnnotations are the annotations of the NodePool itself, not of its template; none when it is gone.
	PoolAnnotations(ctx context.Context, name string) (map[string]string, error)
}

// Quota bounds how often something is done in a time.
type Quota interface {
	// Take reports whether the thing of that name may be done. Asking again for the same thing gives the same answer while it counts.
	Take(ctx context.Context, thing string) (bool, error)
}

// recommended decides about a rebalance recommendation, for whose pools and in which numbers somebody has to be asked.
func (i *Interruption) recommended(ctx context.Context, n interrupt.Notice, claims []cluster.Claim) (interrupt.Outcome, error) {
	o := interrupt.Recommended(n, claims, i.Rebalance, i.Now())
	if !o.Found {
		return o, nil
	}
	annotations, err := i.Pools.PoolAnnotations(ctx, o.Claim.Pool)
	if err != nil {
		return o, err
	}
	pool := interrupt.Policy{Choice: interrupt.Chosen(annotations, i.Rebalance.Choice), MinAge: i.Rebalance.MinAge}
	o = interrupt.Recommended(n, claims, pool, i.Now())
	if o.Leave.Cause == "" {
		return o, nil
	}
	ok, err := i.Quota.Take(ctx, o.Claim.UID)
	if err == nil && !ok {
		o = o.TooMany()
	}
	return o, err
}

// leaving reports whether there is a node to leave that somebody must look after now.
func (p *Provision) leaving(claims []cluster.Claim) bool {
	return slices.ContainsFunc(claims, func(c cluster.Claim) bool { return interrupt.Leaving(c, p.Now()) })
}

// leave condemns the nodes that are to be left and can be: the plan, which was made without them, has room for their pods on nodes
// that are ready. Whether they must go before that is for the decision to say.
func (p *Provision) leave(ctx context.Context, s cluster.Snapshot, going []interrupt.Going, decision plan.Plan) (condemned int, err error) {
	for _, g := range going {
		if g.Wait != "" {
			p.Log.Info("not left now", "claim", g.Claim, "cause", string(g.Leave.Cause), "because", g.Wait)
		}
	}
	claims := map[string]cluster.Claim{}
	for _, c := range s.Claims {
		claims[c.Name] = c
	}
	for _, a := range interrupt.Condemned(s, going, decision) {
		c, ok := claims[a.Claim]
		if !ok {
			continue
		}
		p.Log.Info(a.String())
		if a.Do == plan.SetDeadline {
			set := map[string]string{v1.AnnotationTerminationTimestamp: a.Deadline.UTC().Format(time.RFC3339)}
			if claims[a.Claim], err = p.Claims.AnnotateClaim(ctx, c, set); isConflict(err) {
				p.Log.Info("left to the next pass", "claim", a.Claim, "because", err.Error())
				delete(claims, a.Claim)
			} else if err != nil {
				return condemned, err
			}
			continue
		}
		if err := p.Claims.DeleteClaim(ctx, c); err != nil {
			return condemned, err
		}
		p.sum.did(a)
		condemned++
	}
	return condemned, nil
}
