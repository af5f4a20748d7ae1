package app

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"joiner/events"
	"joiner/pkg/control"
	"joiner/pkg/interrupt"
	"joiner/pkg/ledger"
)

// SpotInterruption handles one warning that EC2 takes a spot instance back.
func (a *App) SpotInterruption(ctx context.Context, event json.RawMessage) error {
	return a.notice(ctx, "spotinterruption", events.KindSpotInterruption, event)
}

// ReservationInterruption handles one warning that an instance loses its capacity reservation.
func (a *App) ReservationInterruption(ctx context.Context, event json.RawMessage) error {
	return a.notice(ctx, "reservationinterruption", events.KindReservationInterruption, event)
}

// Rebalance handles one recommendation to leave a spot instance.
func (a *App) Rebalance(ctx context.Context, event json.RawMessage) error {
	return a.notice(ctx, "rebalance", events.KindRebalance, event)
}

// ScheduledChange handles one announcement of AWS Health about instances.
func (a *App) ScheduledChange(ctx context.Context, event json.RawMessage) error {
	return a.notice(ctx, "scheduledchange", events.KindScheduledChange, event)
}

// StateChange handles one new state of an instance of the account.
func (a *App) StateChange(ctx context.Context, event json.RawMessage) error {
	return a.notice(ctx, "statechange", events.KindStateChange, event)
}

func (a *App) notice(ctx context.Context, function string, kind events.Kind, event []byte) error {
	i := control.Interruption{Read: a.kube, Node: a.kube, Claims: a.kube, Nodes: a.kube, Record: a.kube, SoldOut: a.ledger, Pods: a.kube,
		Pools: a.kube, Quota: ledger.NewQuota(a.kube, "rebalances", a.set.RebalancesPerHour, time.Hour, time.Now), Foreign: &a.foreign,
		Provision: a.wake(a.set.ProvisionFunction, function), Lifecycle: a.wake(a.set.LifecycleFunction, function),
		Place: control.Place{Account: account(ctx), Region: a.aws.Region}, SoldOutFor: a.set.SoldOutFor,
		Rebalance: interrupt.Choice(a.set.Rebalance), QuarantineFor: a.set.RebalanceQuarantine, Now: time.Now, Log: a.log}
	return i.Handle(ctx, kind, event)
}

// account is that of the function which runs, empty outside Lambda.
func account(ctx context.Context) string {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return ""
	}
	parts := strings.Split(lc.InvokedFunctionArn, ":")
	const place = 4 // arn:aws:lambda:region:account:function:name
	if len(parts) <= place {
		return ""
	}
	return parts[place]
}
