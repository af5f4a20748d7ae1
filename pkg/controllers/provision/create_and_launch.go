package provision

import (
	"context"
	"fmt"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
	"joiner.sh/pkg/provisioning/ceiling"
)

// resumeLaunches launches claims that were stored and not launched, because an invocation died or EC2 failed. The
// claims in s are brought up to date.
func (c *Controller) resumeLaunches(ctx context.Context, s *cluster.Snapshot) (launched int) {
	l := c.newLauncher(*s)
	shared, single := groupBatches(c.unfinishedClaims(ctx, l))
	// as one: what a request started is shared out the same way each time
	shared = slices.DeleteFunc(shared, func(batch []cluster.Claim) bool {
		return slices.ContainsFunc(batch, func(claim cluster.Claim) bool { return isLaunchBackingOff(c, claim) })
	})
	became := map[string]cluster.Claim{} // by UID
	note := func(before, after []cluster.Claim, err error) {
		noteLaunches(ctx, c, after, err)
		for _, claim := range before {
			became[claim.UID] = cluster.Claim{} // unless it was not given up
		}
		for _, claim := range after {
			became[claim.UID] = claim
			if claim.ProviderID != "" {
				launched++
			}
		}
	}
	eachBatch(shared, func(batch []cluster.Claim) ([]cluster.Claim, error) {
		return l.launchTogether(ctx, batch, l.resumeBatch)
	}, note)
	for _, claim := range single {
		after, err := l.launchClaim(ctx, claim, true)
		if err != nil {
			after = claim
		}
		note([]cluster.Claim{claim}, []cluster.Claim{after}, err)
	}
	for i, claim := range s.Claims {
		now, ok := became[claim.UID]
		if ok && now.Name == "" && claim.Labels[v1.LabelInstance] != "" { // its node goes with it
			now, now.Deleting = claim, c.Now()
		}
		if ok {
			s.Claims[i] = now
		}
	}
	s.Unavailable = l.orders.knownUnavailable()
	s.Claims = existingNodes(s.Claims)
	return launched
}

// noteLaunches notes what became of the launch of claims: those that have no instance still are left alone for a while
// where that failed.
func noteLaunches(ctx context.Context, controller *Controller, after []cluster.Claim, err error) {
	err = controllers.IgnoreConflict(controller.Log, err)
	for _, c := range after {
		why := err
		if c.Name == "" || c.ProviderID != "" {
			why = nil
		}
		controller.failed.NoteOutcome(ctx, c.UID, why, controller.Now())
	}
}

// eachBatch launches batches, several at a time: that of the second need not wait until the instances of the first are
// written down. What became of each is noted in their order.
func eachBatch(batches [][]cluster.Claim, do func([]cluster.Claim) ([]cluster.Claim, error),
	note func(before, after []cluster.Claim, err error)) {
	after, errs := make([][]cluster.Claim, len(batches)), make([]error, len(batches))
	controllers.ForEach(parallelBatches, batches, func(i int, batch []cluster.Claim) { after[i], errs[i] = do(batch) })
	for i, batch := range batches {
		note(batch, after[i], errs[i])
	}
}

// isLaunchBackingOff reports whether the claim is left alone for now, because its launch failed.
func isLaunchBackingOff(controller *Controller, c cluster.Claim) bool {
	return controller.failed.IsBackingOff(c.UID, controller.Now())
}

// unfinishedClaims are the claims that wait for their launch and may be launched now, ours by now. One that cannot be
// made ours is left to the next pass.
func (c *Controller) unfinishedClaims(ctx context.Context, l *claimLauncher) (out []cluster.Claim) {
	held := ceiling.HeldClaims(l.s)
	for i, claim := range l.s.Claims {
		if claim.Is(v1.ConditionLaunched) || !claim.Deleting.IsZero() || c.mishaps.isBackingOff(claim.UID, c.Now()) ||
			!lifecycle.MayResumeLaunch(claim, c.Rules, c.Now()) {
			continue
		}
		if _, shared := claim.Batch(); !shared && isLaunchBackingOff(c, claim) {
			continue
		}
		if why := held[claim.UID]; why != "" {
			l.s.Claims[i] = l.recordHeld(ctx, claim, why)
			continue
		}
		resume := "resume launch of claim " + claim.Name
		c.TryAction(ctx, &c.failed, "NodeClaim "+claim.Name, resume, func() error {
			c.Log.Info(resume)
			claim, err := c.ensureFinalizer(ctx, claim)
			if err == nil {
				out = append(out, claim)
			}
			return err
		})
	}
	return out
}

// createAndLaunch stores and launches every claim of the plan, several at a time; one that fails does not stop the
// others. Launches that are alike share a request. What is not begun when the invocation has to end, the next one plans
// anew.
func (c *Controller) createAndLaunch(ctx context.Context, s cluster.Snapshot, decision plan.Plan,
	first *pendingDrains) (made launchOutcome) {
	l, all := c.newLauncher(s), decision.AllLaunches()
	claims := c.createClaims(ctx, l, batchLaunches(all, c.ShareFrom, c.Holder+c.Now().String()))
	l.accepted = first.noteAccepted(claims, all)
	shared, _ := groupBatches(existingNodes(claims))
	shares := map[string]cluster.Claim{} // by name, as the shared requests left them
	eachBatch(shared, func(batch []cluster.Claim) ([]cluster.Claim, error) {
		return l.launchTogether(ctx, batch, l.launchStoredBatch)
	}, func(_, after []cluster.Claim, err error) {
		noteLaunches(ctx, c, after, err)
		for _, claim := range after {
			shares[claim.Name] = claim
		}
	})
	for i, claim := range claims {
		if now, ok := shares[claim.Name]; ok && claim.Name != "" {
			claim, claims[i] = now, now
		}
		if claim.ProviderID != "" {
			made.launched = append(made.launched, all[i])
		}
	}
	c.sum.NoteLaunched(s, made.launched, c.Now())
	made.claims, made.planned = claims, all
	return made
}

// launchOutcome holds the results of the launches of a plan.
type launchOutcome struct {
	launched []plan.Launch   // those that have an instance
	planned  []plan.Launch   // all of them
	claims   []cluster.Claim // of planned, in its order; see createClaims for which have an empty name
}

// createClaims stores a claim for each launch, and launches those that share no request. It returns them in the order
// of the launches; one that could not be stored, was given up or could not be launched has an empty name.
func (c *Controller) createClaims(ctx context.Context, l *claimLauncher, launches []plan.Launch) []cluster.Claim {
	out := make([]cluster.Claim, len(launches))
	controllers.ForEach(parallelLaunches, launches, func(i int, want plan.Launch) {
		if controllers.TooLateToBegin(ctx) {
			return
		}
		var made cluster.Claim
		stored := c.TryStep(ctx, &c.failed,
			fmt.Sprintf("a NodeClaim of NodePool %s for %s", want.Pool, describePods(want)),
			func() (err error) { made, err = l.createClaim(ctx, want); return err })
		if _, shared := made.Batch(); shared || !stored || made.Name == "" {
			out[i] = made
			return
		}
		if want.Waits != "" {
			out[i] = l.recordHeld(ctx, made, want.Waits)
			return
		}
		after, err := l.launchClaim(ctx, made, false)
		if err != nil {
			noteLaunches(ctx, c, []cluster.Claim{made}, err)
			return
		}
		out[i] = after
	})
	return out
}

// createClaim stores a claim for the launch; it has no name where the pass may not write.
func (l *claimLauncher) createClaim(ctx context.Context, want plan.Launch) (cluster.Claim, error) {
	if may, err := controllers.MayBegin(ctx, l.p.Log, want.String()); err != nil || !may {
		return cluster.Claim{}, err
	}
	pool, found := l.s.PoolOf(want.Pool)
	if !found {
		return cluster.Claim{}, fmt.Errorf("create NodeClaim: NodePool %s is not in the snapshot of the plan", want.Pool)
	}
	c, err := l.p.Claims.CreateClaim(ctx, want, pool)
	if err != nil {
		return cluster.Claim{}, l.noteRefusedClaim(want, err)
	}
	return c, nil
}

// launchStoredBatch launches a batch that was stored just now.
func (l *claimLauncher) launchStoredBatch(ctx context.Context, claims []cluster.Claim) ([]cluster.Claim, error) {
	if controllers.TooLateToBegin(ctx) {
		return claims, nil
	}
	if b, _ := claims[0].Batch(); b.Size != len(claims) { // not all could be stored, and nothing was asked for yet
		return l.rebatchAndLaunch(ctx, claims)
	}
	return l.launchBatch(ctx, claims, false)
}

func existingNodes(claims []cluster.Claim) []cluster.Claim {
	return lists.Where(claims, func(c cluster.Claim) bool { return c.Name != "" })
}
