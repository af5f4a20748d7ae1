package provision

import (
	"context"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// hasReplaceRequest reports whether there is a node to leave that somebody must look after now.
func (c *Controller) hasReplaceRequest(claims []cluster.Claim) bool {
	return slices.ContainsFunc(claims, func(claim cluster.Claim) bool {
		return interruption.HasReplaceRequest(claim, c.Now())
	})
}

// deleteReplaced deletes the NodeClaims of nodes that are to be left and can be: the plan, which was made without them,
// has room for their pods on nodes that are ready. Whether they must go before that is for the decision to say. One
// that fails does not stop the others.
func (c *Controller) deleteReplaced(ctx context.Context, s cluster.Snapshot, replaced []interruption.PendingReplacement,
	decision plan.Plan) (deleted int) {
	for _, g := range replaced {
		if g.Wait != "" {
			c.Log.Info("replacement postponed", "claim", g.Claim, "cause", string(g.Leave.Cause), "because", g.Wait)
		}
	}
	claims := lists.Index(s.Claims, func(claim cluster.Claim) string { return claim.Name })
	for _, a := range interruption.DeleteReplaced(s, replaced, decision) {
		claim, ok := claims[a.Claim]
		if !ok {
			continue
		}
		done := c.TryAction(ctx, &c.failed, "NodeClaim "+claim.Name, a.String(), func() error {
			c.Log.Info(a.String())
			if a.Do == plan.SetDeadline {
				return setDeadline(ctx, c.Claims, claims, a)
			}
			err := c.Claims.DeleteClaim(ctx, claim)
			if err == nil {
				c.sum.NoteAction(a)
				deleted++
			}
			return err
		})
		if !done {
			delete(claims, a.Claim) // what else is to be done about it relies on that
		}
	}
	return deleted
}

// setDeadline writes the deadline on the claim of the action, which is then in claims as written.
func setDeadline(ctx context.Context, to controllers.Claims, claims map[string]cluster.Claim, a plan.Action) error {
	set := map[string]string{v1.AnnotationTerminationTimestamp: a.Deadline.UTC().Format(time.RFC3339)}
	after, err := to.AnnotateClaim(ctx, claims[a.Claim], set)
	if err == nil {
		claims[a.Claim] = after
	}
	return err
}
