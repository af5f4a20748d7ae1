package disrupt

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

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
func (d *Controller) markDrift(ctx context.Context, s *cluster.Snapshot, sells binpack.Offerings) {
	controllers.NoteStage(ctx, controllers.StageDrift)
	s.Instances = d.listInstances(ctx)
	verdicts := drift.DriftChanges(*s, overlays.ByPool(*s, sells))
	at := map[string]int{}
	for i, c := range s.Claims {
		at[c.Name] = i
	}
	s.Claims = slices.Clone(s.Claims)
	verdicts = slices.DeleteFunc(verdicts, func(v drift.DriftChange) bool {
		return d.failed.IsBackingOff(driftOf(v.Claim), d.Now())
	})
	for _, v := range verdicts[:min(len(verdicts), maxDriftWrites)] {
		c := s.Claims[at[v.Claim]]
		c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions),
			func(k cluster.Condition) bool { return k.Type == v1.ConditionDrifted })
		if v.Reason != "" {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True",
				Reason: v.Reason, Message: v.Message, Since: s.Now})
			d.Log.Info("drifted", "claim", c.Name, "reason", v.Reason, "why", v.Message)
		}
		d.TryStep(ctx, &d.failed, driftOf(c.Name), func() error {
			may, err := controllers.MayBegin(ctx, d.Log, "write condition "+v1.ConditionDrifted+" of NodeClaim "+c.Name)
			if err == nil && may {
				c, err = d.Claims.WriteClaimStatus(ctx, c)
			}
			if err == nil {
				s.Claims[at[v.Claim]] = c
			}
			return err
		})
	}
}

// driftOf names the step that writes the condition Drifted of a claim.
func driftOf(claim string) string { return "drift of NodeClaim " + claim }

// markStill writes how quiet nodes are onto their claims, as those are after the pass. What changed meanwhile is left
// to the next one.
func (d *Controller) markStill(ctx context.Context, claims map[string]cluster.Claim, all []disruption.StabilityNote) {
	subject := func(s disruption.StabilityNote) string { return "Consolidatable of NodeClaim " + s.Claim }
	all = slices.DeleteFunc(all, func(s disruption.StabilityNote) bool {
		return d.failed.IsBackingOff(subject(s), d.Now())
	})
	all = all[:min(len(all), maxStillWrites)]
	var g errgroup.Group
	g.SetLimit(parallelWrites)
	for _, s := range all {
		g.Go(func() error {
			d.TryStep(ctx, &d.failed, subject(s), func() error {
				if may, err := controllers.MayWrite(ctx); err != nil || !may {
					return err
				}
				c := claims[s.Claim]
				c.LastPodEvent = s.LastPodEvent
				c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions),
					func(k cluster.Condition) bool { return k.Type == v1.ConditionConsolidatable })
				if s.Consolidatable {
					c.Conditions = append(c.Conditions,
						cluster.Condition{Type: v1.ConditionConsolidatable, Status: "True",
							Reason: v1.ConditionConsolidatable})
				}
				_, err := d.Claims.WriteClaimStatus(ctx, c)
				return err
			})
			return nil
		})
	}
	_ = g.Wait() // every error was noted
}
