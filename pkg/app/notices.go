package app

import (
	"context"
	"encoding/json"
	"time"

	lambdaevents "github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws/arn"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/providers/invoke"
	"joiner.sh/pkg/providers/store"
)

// SpotInterruption handles one warning that EC2 takes a spot instance back.
func (a *App) SpotInterruption(ctx context.Context, event json.RawMessage) error {
	return a.handleNotice(ctx, "spotinterruption", events.KindSpotInterruption, event)
}

// ReservationInterruption handles one warning that an instance loses its capacity reservation.
func (a *App) ReservationInterruption(ctx context.Context, event json.RawMessage) error {
	return a.handleNotice(ctx, "reservationinterruption", events.KindReservationInterruption, event)
}

// Rebalance handles one recommendation to leave a spot instance.
func (a *App) Rebalance(ctx context.Context, event json.RawMessage) error {
	return a.handleNotice(ctx, "rebalance", events.KindRebalance, event)
}

// ScheduledChange handles one announcement of AWS Health about instances.
func (a *App) ScheduledChange(ctx context.Context, event json.RawMessage) error {
	return a.handleNotice(ctx, "scheduledchange", events.KindScheduledChange, event)
}

// StateChange handles new states of instances of the account, those of others among them. The answer names the messages
// that are worth handling again.
func (a *App) StateChange(ctx context.Context, batch lambdaevents.SQSEvent) (lambdaevents.SQSEventResponse, error) {
	bodies := make([][]byte, len(batch.Records))
	for k, r := range batch.Records {
		bodies[k] = []byte(r.Body)
	}
	var out lambdaevents.SQSEventResponse
	for k, err := range a.prepareNotices(ctx, "statechange").HandleBatch(ctx, events.KindStateChange, bodies) {
		if err != nil {
			id := batch.Records[k].MessageId
			a.log.Warn("a state change is handled again", "message", id, "error", err)
			out.BatchItemFailures = append(out.BatchItemFailures, lambdaevents.SQSBatchItemFailure{ItemIdentifier: id})
		}
	}
	return out, nil
}

func (a *App) handleNotice(ctx context.Context, function string, kind events.Kind, event []byte) error {
	if invoke.Reason(event) == invoke.Clock { // which keeps the function awake, and says nothing
		return nil
	}
	return a.prepareNotices(ctx, function).Handle(ctx, kind, event)
}

func (a *App) prepareNotices(ctx context.Context, function string) *notices.Controller {
	a.permission.trustUntil(leaderBelievedByNotices)
	c := a.newInterruption(function)
	c.Place = notices.Location{Account: ownAccount(ctx), Region: a.aws.Region}
	return &c
}

const (
	// mostRebalancesPerHour caps the nodes that are replaced on recommendations within an hour; further ones are told.
	mostRebalancesPerHour = 20
	// rebalanceOfferingCooldown is the pause before an offering that was left on a recommendation is bought again.
	rebalanceOfferingCooldown = 30 * time.Minute
)

func (a *App) newInterruption(function string) notices.Controller {
	quota := store.NewQuota(a.kube.SharedData, "rebalances", mostRebalancesPerHour, time.Hour, time.Now)
	return notices.Controller{Deps: a.newDeps(""),
		Read: a.kube.Claims, Node: a.kube.Nodes, Claims: a.kube.Claims, Nodes: a.kube.Nodes, Unavailable: a.ledger,
		Pods: a.kube.Pods, Pools: a.kube.Pools,
		Quota:   quota,
		Foreign: &a.foreign, Provision: a.wakeProvision(function), Lifecycle: a.wakeLifecycle(function),
		UnavailableFor: unavailableOfferingTTL,
		Rebalance: interruption.RebalancePolicy{Choice: interruption.RebalanceChoice(a.set.Rebalance),
			MinAge: a.set.RebalanceMinAge},
		QuarantineFor: rebalanceOfferingCooldown}
}

// ownAccount returns the account of the function which runs, empty outside Lambda.
func ownAccount(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	own, _ := arn.Parse(lc.InvokedFunctionArn) // of no account where that is none
	return own.AccountID
}
