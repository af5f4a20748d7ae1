package provision

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"

	"golang.org/x/sync/singleflight"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

// maxAttempts bounds the requests for one claim in one pass; after each one what was refused is unavailable.
const maxAttempts = 8

// claimLauncher launches claims of one pass. It may be used by several goroutines: what one learns to be unavailable,
// all know.
type claimLauncher struct {
	p *Controller
	s cluster.Snapshot // read only

	reading     singleflight.Group // of classes; no lock is held while a port is asked
	mu          sync.Mutex
	unavailable []instancetypes.UnavailableOffering
	classes     map[string]*awsv1.EC2NodeClass
	market      func(cluster.Pool) []instancetypes.Type // what a pool can buy; nil if nobody asked yet
	reckoned    int                                     // how many unavailable offerings it reckons with
	coming      subnetAddresses                         // what launches of this pass take

	ordering sync.Mutex // held while an order is chosen

	// is told for which claims of a batch EC2 started instances, before that is written down; nil for nobody
	accepted func(context.Context, []cluster.Claim)
}

// launch launches one instance for a stored claim and writes the result into it. When EC2 sells nothing that the claim
// allows, the claim is deleted and comes back with an empty name: its pods are packed anew. A claim that was stored by
// an earlier pass may have been launched already.
func (l *claimLauncher) launch(ctx context.Context, c cluster.Claim, stored bool) (cluster.Claim, error) {
	class, err := l.readClass(ctx, c)
	if err != nil && !controllers.IsNotFound(err) { // without a class the launch is hopeless, which choosing finds
		return c, err
	}
	for try := range maxAttempts {
		order, back, err := l.chooseOrder(launchTarget{claim: c, class: class, mayRun: stored && try == 0})
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
		if markErr := l.markUnavailable(ctx, unavailable); markErr != nil {
			return c, markErr
		}
		no, refused := errors.AsType[*instancetypes.NoCapacityError](err)
		switch {
		case err == nil:
			return l.recordLaunched(ctx, c, order, instance)
		case refused:
			l.p.Log.Warn("claim "+c.Name, "outcome", no.Error())
			l.tellOfSpotRole(ctx, c, no)
			if err := l.markUnavailable(ctx, no.Unavailable); err != nil {
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

// launchTarget is a claim that an order is to be chosen for, or a batch that the claim stands for.
type launchTarget struct {
	claim  cluster.Claim
	batch  cluster.Batch
	class  *awsv1.EC2NodeClass
	mayRun bool // it may have been launched already
}

// chooseOrder chooses what to ask for, and counts the addresses that it may take until back is called. It does so for
// one after the other: each must know what the one before takes.
func (l *claimLauncher) chooseOrder(w launchTarget) (o launch.Order, back func([]cluster.Instance), err error) {
	l.ordering.Lock()
	defer l.ordering.Unlock()
	o, err = l.chooseTypes(w, l.typesFor(w.claim))
	if w.mayRun && cannotLaunch(err) {
		// Its instance may run already, without its knowing. The request with its token brings it back, whatever is
		// unavailable by now.
		o, err = l.chooseTypes(w, l.withoutUnavailable(nil)(l.poolOf(w.claim)))
	}
	if err != nil {
		return o, nil, err
	}
	return o, l.reserveAddresses(o), nil
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
	t, ok := l.typeOf(c, i.Type)
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

func (l *claimLauncher) chooseTypes(w launchTarget, types []instancetypes.Type) (launch.Order, error) {
	resolved, ok := l.s.ClassOf(w.claim.ClassKey())
	if !ok {
		return launch.Order{}, &launch.NotReadyError{Class: w.claim.Class, Why: "it does not exist"}
	}
	return launch.ChooseOrder(launch.Input{Claim: w.claim, Batch: w.batch, Class: w.class, Resolved: resolved,
		Cluster: l.p.Cluster, Types: types,
		Addresses: l.freeAddresses(resolved), RelaxMinValues: l.p.Rules.RelaxMinValues})
}

func (l *claimLauncher) typeOf(c cluster.Claim, name string) (instancetypes.Type, bool) {
	for _, t := range l.typesFor(c) {
		if t.Name == name {
			return t, true
		}
	}
	return instancetypes.Type{}, false
}

// typesFor returns what the claim's pool can buy under the overlays. The catalog is resolved again only after
// new ones are unavailable.
func (l *claimLauncher) typesFor(c cluster.Claim) []instancetypes.Type {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.market == nil || l.reckoned != len(l.unavailable) {
		l.reckoned, l.market = len(l.unavailable), l.withoutUnavailable(l.unavailable)
	}
	return l.market(l.poolOf(c))
}

// withoutUnavailable returns a function that lists the types that pools can buy without unavailable offerings.
func (l *claimLauncher) withoutUnavailable(unavailable []instancetypes.UnavailableOffering) func(
	cluster.Pool) []instancetypes.Type {
	return overlays.ByPool(l.s, func(name string) []instancetypes.Type {
		class, found := l.s.ClassOf(name)
		if !found {
			return nil
		}
		return instancetypes.ResolveTypes(l.s.Catalog, class, unavailable, l.p.Now())
	})
}

func (l *claimLauncher) poolOf(c cluster.Claim) cluster.Pool {
	pool, _ := l.s.PoolOf(c.Pool)
	pool.Name, pool.Class, pool.Revision = c.Pool, c.Class, c.Annotations[v1.AnnotationNodeRevision]
	return pool
}

// markUnavailable remembers refused offerings, here and for every other invocation.
func (l *claimLauncher) markUnavailable(ctx context.Context, unavailable []instancetypes.UnavailableOffering) error {
	if len(unavailable) == 0 {
		return nil
	}
	l.mu.Lock()
	for _, u := range unavailable {
		u.Until = l.p.Now().Add(l.p.UnavailableFor)
		l.unavailable = append(l.unavailable, u)
	}
	l.mu.Unlock()
	return l.p.Unavailable.MarkUnavailable(ctx, unavailable, l.p.UnavailableFor)
}

func (l *claimLauncher) readUnavailable() []instancetypes.UnavailableOffering {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]instancetypes.UnavailableOffering(nil), l.unavailable...)
}

// readClass reads the class of the claim once, for all that ask meanwhile: as the revision keeps it that the claim is
// launched with, else as it is.
func (l *claimLauncher) readClass(ctx context.Context, c cluster.Claim) (*awsv1.EC2NodeClass, error) {
	key := c.ClassKey()
	l.mu.Lock()
	known := l.classes[key]
	l.mu.Unlock()
	if known != nil {
		return known, nil
	}
	read, err, _ := l.reading.Do(key, func() (any, error) {
		if key != c.Class && l.p.Rollouts != nil {
			return l.p.Rollouts.ReadRevision(ctx, c.Class, c.Annotations[v1.AnnotationNodeRevision])
		}
		return l.p.Read.ReadClass(ctx, c.Class)
	})
	if err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.classes == nil {
		l.classes = map[string]*awsv1.EC2NodeClass{}
	}
	l.classes[key] = read.(*awsv1.EC2NodeClass)
	return l.classes[key], nil
}

func attemptOf(c cluster.Claim) int {
	n, err := strconv.Atoi(c.Annotations[v1.AnnotationLaunchAttempt])
	if err != nil || n < 0 {
		return 0
	}
	return n
}

// cannotLaunch reports whether the claim cannot be launched as it is, so that its pods must be packed anew.
func cannotLaunch(err error) bool {
	_, sold := errors.AsType[*instancetypes.NoCapacityError](err)
	return sold || isNotReady(err)
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
