package lifecycle

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// needsProof reports whether one of the actions must not be taken on the word of a cache: it takes something away, or
// is a step of a claim that ends.
func needsProof(s cluster.Snapshot, actions []plan.Action) bool {
	ending := map[string]bool{}
	for _, c := range s.Claims {
		ending[c.Name] = !c.Deleting.IsZero()
	}
	return slices.ContainsFunc(actions, func(a plan.Action) bool {
		switch a.Do {
		case plan.WriteStatus, plan.RegisterNode, plan.InitializeNode, plan.Unreserve, plan.OpenNode, plan.TagInstance,
			plan.AdoptClaim, plan.Tell:
			return ending[a.Claim] // refused when the object has changed
		case plan.CountPool, plan.Registrations, plan.NoteShifts:
			return false // counted again by every pass, or once for each claim
		}
		return true
	})
}

// confirmTerminations leaves out the ends of instances that would not be decided if their claims, and the pods of the
// claims' nodes, were as they are stored now. Instances without a claim are not asked about: they were listed before
// the claims.
func (l *Controller) confirmTerminations(ctx context.Context, s cluster.Snapshot, actions []plan.Action) ([]plan.Action,
	error) {
	ending := map[string]bool{}
	for _, a := range actions {
		if a.Do == plan.Terminate && a.Claim != "" {
			ending[a.Claim] = true
		}
	}
	if len(ending) == 0 {
		return actions, nil
	}
	live, err := l.readLiveClaims(ctx, s, ending)
	if err != nil {
		return nil, err
	}
	confirmed := map[string]bool{}
	for _, a := range lifecycle.Next(live).Actions {
		if a.Do == plan.Terminate {
			confirmed[a.Instance] = true
		}
	}
	return slices.DeleteFunc(slices.Clone(actions), func(a plan.Action) bool {
		drop := a.Do == plan.Terminate && a.Claim != "" && !confirmed[a.Instance]
		if drop {
			l.Log.Info("not done, its claim or its pods have changed: " + a.String())
		}
		return drop
	}), nil
}

// readLiveClaims returns the snapshot with these claims, and the pods of their nodes, as they are stored now.
func (l *Controller) readLiveClaims(ctx context.Context, s cluster.Snapshot, claims map[string]bool) (cluster.Snapshot,
	error) {
	var nodes []string
	s.Claims = slices.Clone(s.Claims)
	gone := make([]bool, len(s.Claims))
	var g errgroup.Group
	g.SetLimit(parallelSteps)
	for i, c := range s.Claims {
		if !claims[c.Name] {
			continue
		}
		for _, n := range s.Nodes {
			if n.ProviderID == c.ProviderID && c.ProviderID != "" {
				nodes = append(nodes, n.Name)
			}
		}
		g.Go(func() error {
			now, found, err := l.Live.ReadClaim(ctx, c.Name)
			s.Claims[i], gone[i] = now, !found || now.UID != c.UID
			return err
		})
	}
	pods := make([][]cluster.Pod, len(nodes))
	for i, name := range nodes {
		g.Go(func() (err error) { pods[i], err = l.Live.PodsOn(ctx, name); return err })
	}
	if err := g.Wait(); err != nil {
		return s, err
	}
	left := slices.DeleteFunc(slices.Clone(s.Pods),
		func(p cluster.Pod) bool { return p.NodeName != "" && slices.Contains(nodes, p.NodeName) })
	for _, some := range pods {
		left = append(left, slices.DeleteFunc(some, cluster.Pod.Terminal)...)
	}
	s.Pods = left
	i := -1
	s.Claims = slices.DeleteFunc(s.Claims, func(cluster.Claim) bool { i++; return gone[i] })
	return s, nil
}
