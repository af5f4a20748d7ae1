package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"joiner.sh/pkg/model/metrics"
)

// Limits of an invocation, past which a pass is ended in order.
const (
	// what is left of an invocation for ending it: giving leases back and telling what was measured
	endingTakes = 4 * time.Second
	// part of the memory, in percent, from which on a pass ends: Lambda kills the process that passes all of it
	memoryLimitPercent = 92
	memoryLookEvery    = 50 * time.Millisecond
)

// Memory returns the memory that the process uses, and its limit, in bytes. A limit of 0 is none.
type Memory func() (used, limit int64)

// CutShortError ends a pass before it is done, because the invocation would be cut off. What the pass did stays, and
// the next one goes on there.
type CutShortError struct {
	Why   string // time or memory
	Stage string // what the pass was at
}

// The reasons for which a pass is cut short.
const (
	CutForTime   = "time"
	CutForMemory = "memory"
)

// Error says why and where.
func (e *CutShortError) Error() string {
	return fmt.Sprintf("pass cut short for want of %s while %s", e.Why, e.Stage)
}

// Stages of a pass.
const (
	StageReading   = "reading the cluster"
	StageVolumes   = "reading volumes"
	StageCatalog   = "reading the catalog"
	StageLevels    = "reading what is left"
	StageInstances = "listing instances"
	StageBatching  = "waiting for further pods"
	StageLease     = "taking the lease"
	StageReturning = "returning the lease"
	StageResuming  = "resuming launches"
	StageRollouts  = "advancing rollouts"
	StageDrift     = "marking drift"
	StageDeciding  = "deciding"
	StageApplying  = "applying the plan"
	StageLaunching = "launching"
	StageWaking    = "waking other functions"
	StageRecording = "recording the pass"
)

type stageKey struct{}

// NoteStage notes what the pass of ctx is at from now on. Outside of a limited pass it does nothing.
func NoteStage(ctx context.Context, stage string) {
	if at, ok := ctx.Value(stageKey{}).(*atomic.Pointer[string]); ok {
		at.Store(&stage)
	}
}

// LimitPass is the pass, ended in order when the invocation has little time or memory left. That is logged and measured
// at once, so that it is told of a pass as well that does not end when it is asked to. The pass then returns a
// *CutShortError, unless it ended without an error nevertheless.
func (d *Deps) LimitPass(pass func(context.Context) (bool, error)) func(context.Context) (bool, error) {
	return func(ctx context.Context) (bool, error) {
		stage := &atomic.Pointer[string]{}
		under, cut := context.WithCancelCause(context.WithValue(ctx, stageKey{}, stage))
		NoteStage(under, StageReading)
		var watching sync.WaitGroup
		watching.Go(func() { d.watchLimits(under, stage, cut) })
		busy, err := pass(under)
		cut(nil) // ends watching, unless it cut the pass
		watching.Wait()
		if short, ok := errors.AsType[*CutShortError](context.Cause(under)); ok && err != nil {
			busy, err = false, short
		}
		return busy, err
	}
}

// watchLimits cuts the pass when its time or memory ends, and returns when the pass is over.
func (d *Deps) watchLimits(ctx context.Context, stage *atomic.Pointer[string], cut context.CancelCauseFunc) {
	inTime, stop := LeaveTimeToEnd(ctx)
	defer stop()
	var look <-chan time.Time
	if d.Memory != nil {
		tick := time.NewTicker(memoryLookEvery)
		defer tick.Stop()
		look = tick.C
	}
	for {
		why := CutForMemory
		select {
		case <-inTime.Done():
			if why = CutForTime; ctx.Err() != nil {
				return
			}
		case <-look:
			if !IsMemoryShort(d.Memory()) {
				continue
			}
		}
		short := &CutShortError{Why: why, Stage: *stage.Load()}
		cut(short)
		d.reportCutShort(short)
		return
	}
}

// LeaveTimeToEnd is the context of an invocation less what ending it in order takes.
func LeaveTimeToEnd(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, limited := ctx.Deadline(); limited {
		return context.WithDeadline(ctx, deadline.Add(-endingTakes))
	}
	return context.WithCancel(ctx)
}

// ShareTime is the context with the part of the time left that falls to one of so many who still want some. What one
// does not use the next ones have.
func ShareTime(ctx context.Context, among int) (context.Context, context.CancelFunc) {
	if deadline, limited := ctx.Deadline(); limited {
		return context.WithTimeout(ctx, time.Until(deadline)/time.Duration(among))
	}
	return context.WithCancel(ctx)
}

// IsMemoryShort reports whether a process that goes on may be killed.
func IsMemoryShort(used, limit int64) bool {
	return limit > 0 && used >= limit/100*memoryLimitPercent
}

// reportCutShort logs and counts a pass that was cut short.
func (d *Deps) reportCutShort(e *CutShortError) {
	d.Log.Warn("pass cut short: the next one goes on; raise functionMemory", "forWantOf", e.Why, "while", e.Stage)
	if d.Metrics != nil {
		d.Metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Total(metrics.PassesCutShort, 1)}})
	}
}

// IsCutShort reports whether a pass was ended in order for want of time or memory. Its invocation has nothing left to
// do, and did not fail: the alarm about passes that are cut short tells.
func IsCutShort(err error) bool {
	_, ok := errors.AsType[*CutShortError](err)
	return ok
}
