package controllers

import (
	"context"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/settings"
)

// DecisionRecorder is the decision log of one invocation; without a Diary it is silent.
type DecisionRecorder struct {
	To    DecisionLog
	Stamp decisionlog.PassStamp
	Warn  func(msg string, args ...any)
	last  string // the plan that was kept last
}

// RecordPass notes a pass with a decision that the pass before did not have, or in which something failed. It is never
// in the way of the work: an error is logged.
func (d *DecisionRecorder) RecordPass(ctx context.Context, said string, failed []plan.Fault,
	form func(decisionlog.PassStamp) (decisionlog.Pass, error)) {
	if d.To == nil || said == d.last && len(failed) == 0 {
		return
	}
	stamp := d.Stamp
	if WasRefused(ctx) { // in mode act too, while another controller leads
		stamp.Mode = settings.ModeObserve
	}
	p, err := form(stamp)
	if p.AddFaults(failed...); err == nil && p.HasDecision() {
		err = d.To.WritePass(ctx, p)
	}
	if err != nil {
		d.Warn("decision log", "error", err)
	}
	d.last = said
}
