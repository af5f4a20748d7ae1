package provision

import (
	"context"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
)

// writeNominations notes on claims on their way which pods the plan has on their nodes beside those they were made for,
// so that the next pass has them there too. It comes before launches: whoever dies in between has forgotten nothing
// that others' nodes relied on.
func (c *Controller) writeNominations(ctx context.Context, s *cluster.Snapshot, decision plan.Plan) {
	list := binpack.ListNominations(*s, decision)
	if len(list) == 0 {
		return
	}
	after := make([]cluster.Claim, len(list))
	controllers.ForEach(parallelLaunches, list, func(i int, n binpack.Nomination) {
		if controllers.TooLateToBegin(ctx) {
			return
		}
		subject := "pods nominated for NodeClaim " + n.Claim.Name
		c.TryAction(ctx, &c.failed, subject, nominationAction(n), func() (err error) {
			n.Claim.Version = "" // what lifecycle writes onto it meanwhile says nothing about its pods
			after[i], err = c.Claims.AnnotateClaim(ctx, n.Claim, n.Annotations())
			return err
		})
	})
	s.Claims = slices.Clone(s.Claims)
	for i, claim := range s.Claims {
		for _, now := range after {
			if now.Name == claim.Name && now.UID == claim.UID {
				s.Claims[i] = now
			}
		}
	}
}
