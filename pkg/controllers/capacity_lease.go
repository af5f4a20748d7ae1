package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// The lease is short and renewed, not as long as an invocation: a pass whose process died holds the next one up until
// it ends.
const (
	// CapacityLeaseName is shared by all who create capacity or delete nodes for cost.
	CapacityLeaseName = "joiner-capacity"

	leaseTTL   = 15 * time.Second
	leaseRenew = 5 * time.Second
	stuckAfter = 500 * time.Millisecond // a pass that was ended takes less to return
)

// CapacityLease lets one pass at a time create capacity or delete nodes for cost.
type CapacityLease struct {
	Lease  Lease
	Holder string
}

// RunUnderLease runs the pass as the only one. held is false, and the pass not run, while another has the lease.
// A pass whose lease cannot be renewed in time is canceled: somebody else may have taken it.
func (p CapacityLease) RunUnderLease(ctx context.Context, pass func(context.Context) (bool, error)) (busy,
	held bool, err error) {
	NoteStage(ctx, StageLease)
	release, ok, err := p.Lease.Acquire(ctx, CapacityLeaseName, p.Holder, leaseTTL)
	if err != nil || !ok {
		return false, false, err
	}
	under, lose := context.WithCancelCause(ctx)
	renewed, ended := make(chan struct{}), make(chan struct{})
	giveBack := sync.OnceValue(func() error {
		<-renewed // or it would take the lease back after its release
		return release(context.WithoutCancel(ctx))
	})
	go func() {
		defer close(renewed)
		p.renewUntil(under, lose)
	}()
	stuck := make(chan struct{})
	go func() {
		defer close(stuck)
		giveBackIfStuck(ctx, ended, giveBack)
	}()
	NoteStage(ctx, StageReading)
	busy, err = pass(under)
	NoteStage(ctx, StageReturning)
	close(ended)
	<-stuck
	if lost := context.Cause(under); lost != nil && ctx.Err() == nil {
		err = errors.Join(lost, err)
	}
	lose(nil)
	return busy, true, errors.Join(err, giveBack())
}

// giveBackIfStuck gives the lease of a pass back that goes on although it was ended: it computes, and can write nothing
// any more. The invocation may be cut off before the pass returns.
func giveBackIfStuck(ctx context.Context, ended <-chan struct{}, giveBack func() error) {
	select {
	case <-ended:
		return
	case <-ctx.Done():
	}
	select {
	case <-ended:
	case <-time.After(stuckAfter):
		_ = giveBack() // the end of the pass returns the same error
	}
}

// renewUntil keeps the lease until the context ends, or ends the context when it is lost.
func (p CapacityLease) renewUntil(ctx context.Context, lose context.CancelCauseFunc) {
	tick := time.NewTicker(leaseRenew)
	defer tick.Stop()
	until := time.Now().Add(leaseTTL)
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		asked := time.Now()
		call, cancel := context.WithDeadline(ctx, until)
		_, ok, err := p.Lease.Acquire(call, CapacityLeaseName, p.Holder, leaseTTL)
		cancel()
		switch {
		case err == nil && ok:
			until = asked.Add(leaseTTL)
		case ctx.Err() != nil:
			return
		case err == nil:
			lose(fmt.Errorf("renew lease %s: another invocation has it", CapacityLeaseName))
			return
		case !time.Now().Add(leaseRenew).Before(until): // the next try would come too late
			lose(fmt.Errorf("renew lease %s: %w", CapacityLeaseName, err))
			return
		}
	}
}
