package disrupt

import (
	"context"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/disruption/drift"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/scheduling/binpack"
)

// Writes of conditions in one pass; the next one goes on.
const (
	maxDriftWrites = 100
	maxStillWrites = 100
	parallelWrites = 10
)

// markDrift brings the condition Drifted of the claims up to date, in the cluster and in s. A claim on which it cannot
// be written is as it was, for the pass too.
func (c *Controller) markDrift(ctx context.Context, s *cluster.Snapshot, sells binpack.Offerings) {
	controllers.NoteStage(ctx, controllers.StageDrift)
	s.Instances = c.listInstances(ctx)
	verdicts := drift.DriftChanges(*s, overlays.ByPool(*s, sells))
	at := map[string]int{}
	for i, claim := range s.Claims {
		at[claim.Name] = i
	}
	s.Claims = slices.Clone(s.Claims)
	verdicts = slices.DeleteFunc(verdicts, func(v drift.DriftChange) bool {
		return c.failed.IsBackingOff(driftOf(v.Claim), c.Now())
	})
	for _, v := range verdicts[:min(len(verdicts), maxDriftWrites)] {
		claim := s.Claims[at[v.Claim]]
		claim.Conditions = slices.DeleteFunc(slices.Clone(claim.Conditions),
			func(k cluster.Condition) bool { return k.Type == v1.ConditionDrifted })
		if v.Reason != "" {
			claim.Conditions = append(claim.Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True",
				Reason: v.Reason, Message: v.Message, Since: s.Now})
			c.Log.Info("drifted", "claim", claim.Name, "reason", v.Reason, "why", v.Message)
		}
		c.TryStep(ctx, &c.failed, driftOf(claim.Name), func() error {
			may, err := controllers.MayBegin(ctx, c.Log,
				"write condition "+v1.ConditionDrifted+" of NodeClaim "+claim.Name)
			if err == nil && may {
				claim, err = c.Claims.WriteClaimStatus(ctx, claim)
			}
			if err == nil {
				s.Claims[at[v.Claim]] = claim
			}
			return err
		})
	}
}

// driftOf names the step that writes the condition Drifted of a claim.
func driftOf(claim string) string { return "drift of NodeClaim " + claim }

// markStill writes how quiet nodes are onto their claims, as those are after the pass. What changed meanwhile is left
// to the next one.
func (c *Controller) markStill(ctx context.Context, claims map[string]cluster.Claim, all []disruption.StabilityNote) {
	subject := func(s disruption.StabilityNote) string { return "Consolidatable of NodeClaim " + s.Claim }
	all = slices.DeleteFunc(all, func(s disruption.StabilityNote) bool {
		return c.failed.IsBackingOff(subject(s), c.Now())
	})
	all = all[:min(len(all), maxStillWrites)]
	controllers.ForEach(parallelWrites, all, func(_ int, s disruption.StabilityNote) {
		c.TryStep(ctx, &c.failed, subject(s), func() error {
			if may, err := controllers.MayWrite(ctx); err != nil || !may {
				return err
			}
			claim := claims[s.Claim]
			claim.LastPodEvent = s.LastPodEvent
			claim.Conditions = slices.DeleteFunc(slices.Clone(claim.Conditions),
				func(k cluster.Condition) bool { return k.Type == v1.ConditionConsolidatable })
			if s.Consolidatable {
				claim.Conditions = append(claim.Conditions, cluster.Condition{Type: v1.ConditionConsolidatable,
					Status: "True", Reason: v1.ConditionConsolidatable})
			}
			_, err := c.Claims.WriteClaimStatus(ctx, claim)
			return err
		})
	})
}
