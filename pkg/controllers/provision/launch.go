package provision

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// maxAttempts bounds the requests for one claim in one pass; after each one what was refused is unavailable.
const maxAttempts = 8

// claimLauncher launches claims of one pass, and writes down what becomes of each. It may be used by several
// goroutines.
type claimLauncher struct {
	p      *Controller
	s      cluster.Snapshot // read only
	orders *orderChooser

	// is told for which claims of a batch EC2 started instances, before that is written down; nil for nobody
	accepted func(context.Context, []cluster.Claim)
}

// launch launches one instance for a stored claim and writes the result into it. When EC2 sells nothing that the claim
// allows, the claim is deleted and comes back with an empty name: its pods are packed anew. A claim that was stored by
// an earlier pass may have been launched already.
func (l *claimLauncher) launch(ctx context.Context, c cluster.Claim, stored bool) (cluster.Claim, error) {
	class, err := l.orders.readClass(ctx, c)
	if err != nil && !controllers.IsNotFound(err) { // without a class the launch is hopeless, which choosing finds
		return c, err
	}
	for try := range maxAttempts {
		order, back, err := l.orders.chooseOrder(launchTarget{claim: c, class: class, mayRun: stored && try == 0})
		if cannotLaunch(err) {
			return cluster.Claim{}, l.giveUp(ctx, c, err)
		}
		if isReadinessUnknown(err) { // refresh was woken and tells soon
			l.p.Log.Info("claim "+c.Name+" waits", "because", err.Error())
			return l.recordUnlaunched(ctx, c, launch.ReasonReadinessUnknown, err.Error())
		}
		if err != nil {
			return c, fmt.Errorf("launch for claim %s: %w", c.Name, err)
		}
		if may, err := controllers.MayBegin(ctx, l.p.Log, order.String()); err != nil || !may { // the next pass goes on
			back(nil)
			return c, err
		}
		l.p.Log.Info(order.String())
		instance, unavailable, err := l.p.Fleet.LaunchInstances(ctx, order, launch.ClientToken(c.UID, attemptOf(c)))
		err = avoidRefused(l.p, c, order, err)
		back(isStarted(instance))
		if markErr := l.orders.markUnavailable(ctx, unavailable); markErr != nil {
			return c, markErr
		}
		no, refused := errors.AsType[*instancetypes.NoCapacityError](err)
		switch {
		case err == nil:
			return l.recordLaunched(ctx, c, order, instance)
		case refused:
			l.p.Log.Warn("claim "+c.Name, "outcome", no.Error())
			l.tellOfSpotRole(ctx, c, no)
			if err := l.orders.markUnavailable(ctx, no.Unavailable); err != nil {
				return c, err
			}
		case isTokenUsed(err):
			l.p.Log.Warn("claim "+c.Name, "outcome", err.Error())
		default:
			return l.recordFailed(ctx, c, err)
		}
		if c, err = l.nextAttempt(ctx, c); err != nil {
			return c, err
		}
	}
	return c, nil // the next pass goes on
}

func isStarted(i cluster.Instance) []cluster.Instance {
	if i.ID == "" {
		return nil
	}
	return []cluster.Instance{i}
}

// recordLaunched writes the instance into the claim: labels first, because the status ends the launch.
func (l *claimLauncher) recordLaunched(ctx context.Context, c cluster.Claim, o launch.Order,
	i cluster.Instance) (cluster.Claim, error) {
	t, ok := l.orders.typeOf(c, i.Type)
	if !ok {
		return c, fmt.Errorf("launch for claim %s: EC2 started a %s, which the catalog does not know", c.Name, i.Type)
	}
	done := launch.LaunchResult(c, o, t, i)
	var err error
	if c, err = l.p.Claims.LabelClaim(ctx, c, done.Labels, done.Annotations); err != nil {
		return c, err
	}
	c.ProviderID, c.ImageID, c.Capacity, c.Allocatable = done.ProviderID, done.ImageID, done.Capacity, done.Allocatable
	c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionLaunched, Status: "True",
		Since: l.p.Now()})
	if absent := lifecycle.NotJoined(); !c.Is(absent.Type) { // what lifecycle would write next
		absent.Since = l.p.Now()
		c.Conditions = cluster.WithCondition(c.Conditions, absent)
	}
	if c, err = l.p.Claims.WriteClaimStatus(ctx, c); err != nil {
		return c, err
	}
	l.p.Log.Info("launched", "claim", c.Name, "instance", i.ID, "type", i.Type, "zone", i.Zone, "capacityType",
		i.CapacityType)
	return c, nil
}

// giveUp deletes a claim for which nothing can be bought now.
func (l *claimLauncher) giveUp(ctx context.Context, c cluster.Claim, why error) error {
	l.p.Log.Warn("claim "+c.Name+" is given up", "why", why.Error())
	reason, counted := "InsufficientCapacityError", "insufficient_capacity"
	if isNotReady(why) {
		reason, counted = "NodeClassNotReady", "nodeclass_not_ready"
	}
	err := l.p.Record.RecordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true,
		Reason: reason, Message: why.Error()})
	if err != nil {
		l.p.Log.Warn("event on claim "+c.Name, "error", err)
	}
	if err = l.p.Claims.DeleteClaim(ctx, c); err != nil {
		return err
	}
	l.p.sum.NoteGivenUp(counted)
	return nil
}

// nextAttempt gives the claim another token: the next request differs from the last one, or EC2 would only repeat its
// answer. The token must be known before the request is sent.
func (l *claimLauncher) nextAttempt(ctx context.Context, c cluster.Claim) (cluster.Claim, error) {
	return l.p.Claims.AnnotateClaim(ctx, c, map[string]string{v1.AnnotationLaunchAttempt: strconv.Itoa(attemptOf(c) +
		1)})
}

// recordFailed says on the claim why it is not launched yet, and returns that as an error.
func (l *claimLauncher) recordFailed(ctx context.Context, c cluster.Claim, why error) (cluster.Claim, error) {
	err := fmt.Errorf("launch for claim %s: %w", c.Name, why)
	ctx = context.WithoutCancel(ctx)
	if isTokenSpent(why) {
		next, markErr := l.nextAttempt(ctx, c)
		if markErr != nil {
			return c, errors.Join(err, markErr)
		}
		c = next
	}
	reason, message := awserrors.LaunchFailureReason(why)
	c, statusErr := l.recordUnlaunched(ctx, c, reason, message)
	return c, errors.Join(err, statusErr)
}

// recordUnlaunched says on the claim why it is not launched yet. Its launch is tried again until the time-out.
func (l *claimLauncher) recordUnlaunched(ctx context.Context, c cluster.Claim, reason, message string) (cluster.Claim,
	error) {
	have := c.Condition(v1.ConditionLaunched)
	if have.Status == "Unknown" && have.Reason == reason && have.Message == message {
		return c, nil
	}
	c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionLaunched, Status: "Unknown",
		Reason: reason, Message: message, Since: have.Since})
	written, err := l.p.Claims.WriteClaimStatus(ctx, c)
	if err != nil {
		return c, err
	}
	return written, nil
}

// tellOfSpotRole writes the event when spot is refused for want of the service-linked role.
func (l *claimLauncher) tellOfSpotRole(ctx context.Context, c cluster.Claim, no *instancetypes.NoCapacityError) {
	for _, u := range no.Unavailable {
		if u.Why != awserrors.SpotRoleMissing {
			continue
		}
		reason, message := awserrors.LaunchFailureReason(errors.New(u.Why))
		err := l.p.Record.RecordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true,
			Reason: reason, Message: message})
		if err != nil {
			l.p.Log.Warn("event on claim "+c.Name, "error", err)
		}
		return
	}
}

func attemptOf(c cluster.Claim) int {
	n, err := strconv.Atoi(c.Annotations[v1.AnnotationLaunchAttempt])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// cannotLaunch reports whether err says that the claim cannot be launched as it is, so that its pods are packed anew.
func cannotLaunch(err error) bool {
	_, soldOut := errors.AsType[*instancetypes.NoCapacityError](err)
	return soldOut || isNotReady(err)
}

func isNotReady(err error) bool {
	_, ok := errors.AsType[*launch.NotReadyError](err)
	return ok
}

func isReadinessUnknown(err error) bool {
	_, ok := errors.AsType[*launch.ReadinessUnknownError](err)
	return ok
}

// isTokenSpent reports whether EC2 answered with an error that it would repeat for the same token.
func isTokenSpent(err error) bool {
	s, ok := errors.AsType[interface {
		error
		TokenSpent() bool
	}](err)
	return ok && s.TokenSpent()
}

func isTokenUsed(err error) bool {
	_, ok := errors.AsType[*launch.TokenUsedError](err)
	return ok
}
