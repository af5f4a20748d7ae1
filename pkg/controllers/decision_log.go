package controllers

import (
	"context"

	"joiner/pkg/decisionlog"
	"joiner/pkg/model/plan"
	"joiner/pkg/settings"
)

// DecisionLog keeps what passes decided.
type DecisionLog interface {
	// WriteTick keeps one tick. It may be repeated.
	WriteTick(ctx context.Context, t decisionlog.Tick) error
}

// decisionLog is the decision log of one invocation; without a Diary it is silent.
type decisionLog struct {
	to    DecisionLog
	stamp decisionlog.PassStamp
	warn  func(msg string, args ...any)
	last  string // the plan that was kept last
}

// recordTick notes a tick with a decision that the pass before did not have, or in which something failed. It is never
// in the way of the work: an error is logged.
func (d *decisionLog) recordTick(ctx context.Context, said string, failed []plan.Fault,
	form func(decisionlog.PassStamp) (decisionlog.Tick, error)) {
	if d.to == nil || said == d.last && len(failed) == 0 {
		return
	}
	stamp := d.stamp
	if wasRefused(ctx) { // in mode act too, while another controller leads
		stamp.Mode = settings.ModeObserve
	}
	t, err := form(stamp)
	if t.Fail(failed...); err == nil && t.HasDecision() {
		err = d.to.WriteTick(ctx, t)
	}
	if err != nil {
		d.warn("decision log", "error", err)
	}
	d.last = said
}
