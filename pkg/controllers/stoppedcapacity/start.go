package stoppedcapacity

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/lifecycle"
)

const parallelStarts = 8

// Instances starts stopped instances.
type Instances interface {
	// StartInstance starts a stopped instance; one that runs is no error, so that it may be repeated. The error is a
	// *instancetypes.NoCapacityError when EC2 has none for it, and has a method NotStartable that reports true when the
	// instance is gone, in no state to be started from, or the call is not allowed.
	StartInstance(ctx context.Context, id string, o instancetypes.OfferingKey) error
}

// Starter implements controllers.StoppedCapacity.
type Starter struct {
	controllers.Deps

	Claims         controllers.Claims
	Fleet          Instances
	Unavailable    controllers.UnavailableOfferings
	UnavailableFor time.Duration
}

// started is the result of one start.
type started struct {
	claim       cluster.Claim
	unavailable []instancetypes.UnavailableOffering
	refused     bool
	err         error
}

// StartNodes notes on each claim that its instance is asked to start, starts it, and writes onto the claim that its
// node is on its way. Who comes after one that died in between finds the note, and does the rest.
func (s *Starter) StartNodes(ctx context.Context, snapshot cluster.Snapshot, starts []plan.Start) (cluster.Snapshot,
	bool, error) {
	at := map[string]int{}
	for i, c := range snapshot.Claims {
		at[c.Name] = i
	}
	starts = slices.DeleteFunc(slices.Clone(starts), func(one plan.Start) bool {
		_, known := at[one.Claim]
		return !known
	})
	outcomes := make([]started, len(starts))
	controllers.ForEach(parallelStarts, starts, func(i int, one plan.Start) {
		outcomes[i] = started{claim: snapshot.Claims[at[one.Claim]]}
		if controllers.TooLateToBegin(ctx) {
			return
		}
		outcomes[i].err = s.Shield().Do("NodeClaim "+one.Claim, func() error {
			outcomes[i] = s.startNode(ctx, snapshot.Claims[at[one.Claim]], one)
			return outcomes[i].err
		})
	})
	snapshot.Claims, snapshot.Unavailable = slices.Clone(snapshot.Claims), slices.Clone(snapshot.Unavailable)
	var unavailable []instancetypes.UnavailableOffering
	var errs []error
	refused := false
	for i, o := range outcomes {
		snapshot.Claims[at[starts[i].Claim]] = o.claim
		unavailable, refused = append(unavailable, o.unavailable...), refused || o.refused
		errs = append(errs, controllers.IgnoreConflict(s.Log, o.err))
	}
	for _, u := range unavailable {
		u.Until = s.Now().Add(s.UnavailableFor)
		snapshot.Unavailable = append(snapshot.Unavailable, u)
	}
	if len(unavailable) > 0 {
		errs = append(errs, s.Unavailable.MarkUnavailable(ctx, unavailable, s.UnavailableFor))
	}
	return snapshot, refused, errors.Join(errs...)
}

// startNode starts one instance.
func (s *Starter) startNode(ctx context.Context, c cluster.Claim, one plan.Start) started {
	if may, err := controllers.MayBegin(ctx, s.Log, one.String()); err != nil || !may {
		return started{claim: c, err: err}
	}
	noted, err := s.Claims.AnnotateClaim(ctx, c, map[string]string{
		v1.AnnotationStartRequested: s.Now().UTC().Format(time.RFC3339)})
	if err != nil {
		return started{claim: notStartable(c), refused: controllers.IsConflict(err), err: err}
	}
	offering := instancetypes.OfferingKeyOf(c.Labels)
	err = s.Fleet.StartInstance(ctx, c.InstanceID(), offering)
	no, sold := errors.AsType[*instancetypes.NoCapacityError](err)
	switch {
	case sold || isNotStartable(err):
		return s.withdraw(ctx, noted, no, err)
	case err != nil:
		return started{claim: noted, err: fmt.Errorf("start the instance of claim %s: %w", c.Name, err)}
	}
	noted.NodeName = ""
	noted.Conditions = slices.DeleteFunc(slices.Clone(noted.Conditions), func(k cluster.Condition) bool {
		return k.Type == v1.ConditionConsolidatable || k.Type == v1.ConditionConsistentStateFound
	})
	for _, k := range lifecycle.StartedConditions() {
		k.Since = s.Now()
		noted.Conditions = cluster.WithCondition(noted.Conditions, k)
	}
	written, err := s.Claims.WriteClaimStatus(ctx, noted)
	if err != nil {
		return started{claim: noted, err: err}
	}
	s.Log.Info("started", "claim", c.Name, "providerID", c.ProviderID)
	return started{claim: written}
}

// withdraw takes the note back of a start that EC2 refused. Nobody waits for the node then.
func (s *Starter) withdraw(ctx context.Context, c cluster.Claim, no *instancetypes.NoCapacityError,
	why error) started {
	s.Log.Warn("claim "+c.Name+" is not started", "why", why.Error())
	out := started{claim: notStartable(c), refused: true}
	if no != nil {
		out.unavailable = no.Unavailable
	}
	written, err := s.Claims.AnnotateClaim(ctx, c, map[string]string{v1.AnnotationStartRequested: ""})
	if err != nil {
		out.err = err
		return out
	}
	if out.claim = written; no == nil {
		out.claim = notStartable(written)
	}
	eventErr := s.Record.RecordEvent(ctx, cluster.Event{Kind: "NodeClaim", Name: c.Name, UID: c.UID, Warning: true,
		Reason: "FailedStart", Message: why.Error()})
	if eventErr != nil {
		s.Log.Warn("event on claim "+c.Name, "error", eventErr)
	}
	return out
}

// notStartable is the claim as one whose instance this pass does not start.
func notStartable(c cluster.Claim) cluster.Claim {
	c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionStopped, Status: "Unknown",
		Reason: v1.ReasonStopping})
	return c
}

func isNotStartable(err error) bool {
	s, ok := errors.AsType[interface {
		error
		NotStartable() bool
	}](err)
	return ok && s.NotStartable()
}
