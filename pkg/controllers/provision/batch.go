package provision

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// mostBatch bounds the claims of one request, so that one that is refused takes few along.
const mostBatch = 250

// batchLaunches notes on launches that are alike, where there are at least so many, that they share a request. What is
// alike gets the same nodes: only the pods and what these ask for may differ. The note is stored with the claim, before
// anything is asked of EC2: whoever comes after can repeat the request with the batch's token, and share out what that
// brings.
func batchLaunches(launches []plan.Launch, least int, seed string) []plan.Launch {
	if least <= 0 || len(launches) < least {
		return launches
	}
	alike := map[string][]int{}
	for i, l := range launches {
		if l.Waits != "" {
			continue // nothing is asked for it now
		}
		key := fmt.Sprint(l.Pool, l.Class, l.Requirements, l.Labels, launchAnnotations(l.Annotations), l.Taints,
			nomination.AtBoot(l.Startup), l.Types)
		alike[key] = append(alike[key], i)
	}
	out := slices.Clone(launches)
	for _, key := range slices.Sorted(maps.Keys(alike)) {
		if len(alike[key]) < least {
			continue
		}
		for part := range slices.Chunk(alike[key], mostBatch) {
			b := cluster.Batch{ID: launchDigest(seed, key, strconv.Itoa(part[0])), Size: len(part)}
			for _, i := range part {
				notes := maps.Clone(out[i].Annotations)
				if notes == nil {
					notes = map[string]string{}
				}
				notes[v1.AnnotationLaunchBatch] = b.String()
				out[i].Annotations = notes
			}
		}
	}
	return out
}

// launchAnnotations are the annotations that a launch looks at.
func launchAnnotations(all map[string]string) []string {
	out := []string{all[v1.AnnotationPriceOverlay], all[v1.AnnotationMinValuesRelaxed]}
	if revision := all[v1.AnnotationNodeRevision]; revision != "" {
		out = append(out, revision)
	}
	return out
}

func launchDigest(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return hex.EncodeToString(sum[:])[:20]
}

// groupBatches are the claims that share requests, each batch sorted by UID, and the claims that do not.
func groupBatches(claims []cluster.Claim) (shared [][]cluster.Claim, single []cluster.Claim) {
	byID := map[string][]cluster.Claim{}
	for _, c := range claims {
		if b, ok := c.Batch(); ok {
			byID[b.ID] = append(byID[b.ID], c)
		} else {
			single = append(single, c)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(byID)) {
		shared = append(shared, slices.SortedFunc(slices.Values(byID[id]),
			func(a, b cluster.Claim) int { return cmp.Compare(a.UID, b.UID) }))
	}
	return shared, single
}

// launchBatch launches the claims of one batch, sorted by UID, that have no instance yet, with as few requests as it
// takes. It returns them as they are stored then; a claim that was given up has an empty name.
func (l *claimLauncher) launchBatch(ctx context.Context, claims []cluster.Claim, stored bool) ([]cluster.Claim, error) {
	var done []cluster.Claim
	var failed error // about claims of which the others are independent
	class, err := l.orders.readClass(ctx, claims[0])
	if err != nil && !controllers.IsNotFound(err) {
		return claims, err
	}
	for try := range maxAttempts {
		b, shared := claims[0].Batch()
		if !shared { // one is left
			last, err := l.oneByOne(ctx, claims)
			return append(done, last...), errors.Join(failed, err)
		}
		order, back, err := l.orders.chooseOrder(launchTarget{claim: representativeClaim(claims), batch: b,
			class: class, mayRun: stored && try == 0})
		if err != nil { // each may be better off alone, and says what is wrong
			alone, err := l.launchSeparately(ctx, claims)
			return append(done, alone...), errors.Join(failed, err)
		}
		if may, err := controllers.MayBegin(ctx, l.p.Log, order.String()); err != nil || !may { // the next pass goes on
			back(nil)
			return append(done, claims...), errors.Join(failed, err)
		}
		l.p.Log.Info(order.String())
		got, unavailable, launchErr := l.p.Fleet.LaunchBatch(ctx, order, launch.ClientToken(b.ID, attemptOf(claims[0])))
		launchErr = avoidRefused(l.p, claims[0], order, launchErr)
		back(got)
		no, refused := errors.AsType[*instancetypes.NoCapacityError](launchErr)
		if refused {
			unavailable = append(unavailable, no.Unavailable...)
			l.tellOfSpotRole(ctx, claims[0], no)
		}
		if err := l.orders.markUnavailable(ctx, unavailable); err != nil {
			return append(done, claims...), errors.Join(failed, err)
		}
		served, rest, err := l.assignInstances(ctx, claims, order, got)
		done, failed = append(done, served...), errors.Join(failed, err)
		// The same request repeated, what was not written down finds its instance. Where that fails again, the rest
		// need not wait for it.
		if len(rest) == 0 || controllers.TooLateToBegin(ctx) || err != nil && !stored {
			return append(done, rest...), failed
		}
		if launchErr != nil {
			l.p.Log.Warn("batch "+b.ID, "waiting", len(rest), "outcome", launchErr.Error())
		}
		if launchErr != nil && !refused && !isTokenUsed(launchErr) {
			rest, err = l.failedTogether(ctx, rest, launchErr)
			return append(done, rest...), errors.Join(failed, err)
		}
		claims, rest, err = l.rebatchRemaining(ctx, rest)
		done, failed = append(done, rest...), errors.Join(failed, err)
		if len(claims) == 0 {
			break
		}
	}
	return append(done, claims...), failed // the next pass goes on
}

// failedTogether says on the claims why they are not launched yet, and returns that as an error.
func (l *claimLauncher) failedTogether(ctx context.Context, claims []cluster.Claim, why error) ([]cluster.Claim,
	error) {
	b, _ := claims[0].Batch()
	err := fmt.Errorf("launch for batch %s: %w", b.ID, why)
	ctx = context.WithoutCancel(ctx)
	if isTokenSpent(why) {
		next, left, markErr := l.rebatchRemaining(ctx, claims)
		claims, err = slices.Concat(next, left), errors.Join(err, markErr)
	}
	reason, message := awserrors.LaunchFailureReason(why)
	claims, statusErr := l.forEachClaim(ctx, claims, func(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
		return l.recordUnlaunched(ctx, c, reason, message)
	})
	return claims, errors.Join(err, statusErr)
}

// resumeBatch goes on with what is left of a batch. One with fewer claims than it was meant for was never asked for,
// because a claim could not be stored, or a claim was deleted since: what is left becomes a batch of its own. Should
// the request have been made all the same, what it started is ended as leaked, which is less than what asking for
// instances that nobody wants would start. Claims that name their instances get these by the same request.
func (l *claimLauncher) resumeBatch(ctx context.Context, claims []cluster.Claim) ([]cluster.Claim, error) {
	b, _ := claims[0].Batch()
	members := 0
	for _, c := range l.s.Claims {
		if of, ok := c.Batch(); ok && of.ID == b.ID {
			members++
		}
	}
	if members >= b.Size {
		return l.launchBatch(ctx, claims, true)
	}
	var named, rest, done []cluster.Claim
	for _, c := range claims {
		if c.Labels[v1.LabelInstance] != "" {
			named = append(named, c)
		} else {
			rest = append(rest, c)
		}
	}
	var err error
	if len(named) > 0 {
		done, err = l.launchBatch(ctx, named, true)
	}
	if len(rest) == 0 {
		return done, err
	}
	others, restErr := l.rebatchAndLaunch(ctx, rest)
	return append(done, others...), errors.Join(err, restErr)
}

// rebatchAndLaunch launches what is left of a batch as one of its own.
func (l *claimLauncher) rebatchAndLaunch(ctx context.Context, claims []cluster.Claim) ([]cluster.Claim, error) {
	claims, left, err := l.rebatchRemaining(ctx, claims)
	if len(claims) == 0 {
		return left, err
	}
	done, launchErr := l.launchBatch(ctx, claims, false)
	return append(done, left...), errors.Join(err, launchErr)
}

// representativeClaim is a claim that needs what any of the claims does.
func representativeClaim(claims []cluster.Claim) cluster.Claim {
	c := claims[0]
	for _, other := range claims[1:] {
		c.Requests = c.Requests.Max(other.Requests)
	}
	return c
}

// assignInstances gives the instances that no claim has yet to the claims in their order, and first those that a claim
// names to that one. Whoever does it, and however often, does it the same way as far as it was not done before.
func (l *claimLauncher) assignInstances(ctx context.Context, claims []cluster.Claim, o launch.Order,
	got []cluster.Instance) (served, rest []cluster.Claim, err error) {
	byUID := matchInstances(claims, l.s.Claims, got)
	for _, c := range claims {
		if _, found := byUID[c.UID]; found {
			served = append(served, c)
		} else {
			rest = append(rest, c)
		}
	}
	if l.accepted != nil && len(served) > 0 {
		l.accepted(ctx, served)
	}
	served, err = l.forEachClaim(ctx, served, func(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
		if controllers.TooLateToBegin(ctx) { // the same request brings the next invocation the same instance
			return c, nil
		}
		return l.recordLaunched(ctx, c, o, byUID[c.UID])
	})
	return served, rest, err
}

// matchInstances are the instances of the claims, by UID. None gets what another claim of all has or names.
func matchInstances(claims, all []cluster.Claim, got []cluster.Instance) map[string]cluster.Instance {
	owned, named := map[string]bool{}, map[string]string{} // by provider id; UIDs by instance
	for _, c := range all {
		if c.ProviderID != "" {
			owned[c.ProviderID] = true
		} else if id := c.Labels[v1.LabelInstance]; id != "" {
			named[id] = c.UID
		}
	}
	byUID, free := map[string]cluster.Instance{}, []cluster.Instance{}
	for _, i := range got {
		if uid, ok := named[i.ID]; ok && !owned[i.ProviderID()] {
			byUID[uid] = i
		} else if !owned[i.ProviderID()] {
			free = append(free, i)
		}
	}
	slices.SortFunc(free, func(a, b cluster.Instance) int { return cmp.Compare(a.ID, b.ID) })
	for _, c := range claims {
		if _, found := byUID[c.UID]; !found && len(free) > 0 {
			byUID[c.UID], free = free[0], free[1:]
		}
	}
	return byUID
}

// rebatchRemaining makes a new batch of what is left of one, with a token of its own, before it is asked for. The name
// follows from the claims, so that two that are left of one batch, because this was interrupted, do not meet. Claims on
// which that cannot be written are left out, and launched by a later pass.
func (l *claimLauncher) rebatchRemaining(ctx context.Context, claims []cluster.Claim) (batch, leftOut []cluster.Claim,
	err error) {
	for batch = claims; len(batch) > 0; {
		parts := []string{strconv.Itoa(attemptOf(batch[0]) + 1)}
		for _, c := range batch {
			parts = append(parts, c.UID)
		}
		b := cluster.Batch{ID: launchDigest(parts...), Size: len(batch)}
		if len(batch) == 1 {
			b = cluster.Batch{}
		}
		written, left, writeErr := l.writeBatch(ctx, batch, b)
		batch, leftOut, err = written, append(leftOut, left...), errors.Join(err, writeErr)
		if len(left) == 0 {
			break
		}
	}
	return batch, leftOut, err
}

// writeBatch notes on the claims that they share a request, or that they share none. Those on which that cannot be
// written are left out.
func (l *claimLauncher) writeBatch(ctx context.Context, claims []cluster.Claim, b cluster.Batch) (written,
	leftOut []cluster.Claim, err error) {
	all, err := l.forEachClaim(ctx, claims, func(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
		return l.p.Claims.AnnotateClaim(ctx, c, map[string]string{
			v1.AnnotationLaunchAttempt: strconv.Itoa(attemptOf(c) + 1), v1.AnnotationLaunchBatch: b.String()})
	})
	for i, c := range all {
		if attemptOf(c) == attemptOf(claims[i]) {
			leftOut = append(leftOut, c)
		} else {
			written = append(written, c)
		}
	}
	return written, leftOut, err
}

// launchSeparately launches each claim of a batch on its own.
func (l *claimLauncher) launchSeparately(ctx context.Context, claims []cluster.Claim) ([]cluster.Claim, error) {
	claims, left, err := l.writeBatch(ctx, claims, cluster.Batch{})
	done, launchErr := l.oneByOne(ctx, claims)
	return append(done, left...), errors.Join(err, launchErr)
}

// oneByOne launches each of the claims, which no pass before has launched.
func (l *claimLauncher) oneByOne(ctx context.Context, claims []cluster.Claim) ([]cluster.Claim, error) {
	return l.forEachClaim(ctx, claims, func(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
		return l.launchClaim(ctx, c, false)
	})
}

// forEachClaim does something to all claims, several at a time, and returns what became of them, in their order. One
// that fails does not stop the others, and stays as it was.
func (l *claimLauncher) forEachClaim(ctx context.Context, claims []cluster.Claim,
	do func(context.Context, cluster.Claim) (cluster.Claim, error)) ([]cluster.Claim, error) {
	out, errs := make([]cluster.Claim, len(claims)), make([]error, len(claims))
	controllers.ForEach(parallelLaunches, claims, func(i int, c cluster.Claim) {
		if out[i], errs[i] = l.shieldClaim(ctx, c,
			func() (cluster.Claim, error) { return do(ctx, c) }); errs[i] != nil {
			out[i] = c
		}
	})
	return out, errors.Join(errs...)
}
