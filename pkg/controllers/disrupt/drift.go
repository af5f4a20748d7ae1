package disrupt

import (
	"context"
	"errors"
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

// markDrift brings the condition Drifted of the claims up to date, in the cluster and in s.
func (d *Controller) markDrift(ctx context.Context, s *cluster.Snapshot, sells binpack.Offerings) error {
	controllers.NoteStage(ctx, controllers.StageDrift)
	s.Instances = d.listInstances(ctx)
	verdicts := drift.DriftChanges(*s, overlays.ByPool(*s, sells))
	at := map[string]int{}
	for i, c := range s.Claims {
		at[c.Name] = i
	}
	s.Claims = slices.Clone(s.Claims)
	for _, v := range verdicts[:min(len(verdicts), maxDriftWrites)] {
		c := s.Claims[at[v.Claim]]
		c.Conditions = slices.DeleteFunc(slices.Clone(c.Conditions),
			func(k cluster.Condition) bool { return k.Type == v1.ConditionDrifted })
		if v.Reason != "" {
			c.Conditions = append(c.Conditions, cluster.Condition{Type: v1.ConditionDrifted, Status: "True",
				Reason: v.Reason, Message: v.Message, Since: s.Now})
			d.Log.Info("drifted", "claim", c.Name, "reason", v.Reason, "why", v.Message)
		}
		may, err := controllers.MayBegin(ctx, d.Log, "write condition "+v1.ConditionDrifted+" of NodeClaim "+c.Name)
		if err != nil {
			return err
		}
		if !may {
			s.Claims[at[v.Claim]] = c
			continue
		}
		change := controllers.BeginChange(ctx, "write NodeClaim", c.Name)
		written, err := d.Claims.WriteClaimStatus(ctx, c)
		change.End(err)
		if controllers.IsConflict(err) {
			continue // the next pass sees what it has become
		}
		if err != nil {
			return err
		}
		s.Claims[at[v.Claim]] = written
	}
	return nil
}

// markStill writes how quiet nodes are onto their claims, as those are after the pass. What changed meanwhile is left
// to the next one.
func (d *Controller) markStill(ctx context.Context, claims map[string]cluster.Claim,
	all []disruption.StabilityNote) error {
	all = all[:min(len(all), maxStillWrites)]
	errs := make([]error, len(all))
	var g errgroup.Group
	g.SetLimit(parallelWrites)
	for i, s := range all {
		g.Go(func() error {
			if may, err := controllers.MayWrite(ctx); err != nil || !may {
				errs[i] = err
				return nil
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
			change := controllers.BeginChange(ctx, "write NodeClaim", c.Name)
			_, err := d.Claims.WriteClaimStatus(ctx, c)
			if change.End(err); !controllers.IsConflict(err) {
				errs[i] = err
			}
			return nil
		})
	}
	_ = g.Wait() // every error is in errs
	return errors.Join(errs...)
}
