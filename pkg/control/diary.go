package control

import (
	"context"

	"joiner/pkg/plan"
	"joiner/pkg/tick"
)

// Diary keeps what passes decided.
type Diary interface {
	// Note keeps one tick. It may be repeated.
	Note(ctx context.Context, t tick.Tick) error
}

// diary is the decision log of one invocation; without a Diary it is silent.
type diary struct {
	to    Diary
	stamp tick.Stamp
	warn  func(msg string, args ...any)
	last  string // the plan that was kept last
}

// keep notes a tick with a decision that the pass before did not have, or in which something failed. It is never in the way of the work: an
// error is logged.
func (d *diary) keep(ctx context.Context, said string, failed []plan.Fault, form func(tick.Stamp) (tick.Tick, error)) {
	if d.to == nil || said == d.last && len(failed) == 0 {
		return
	}
	t, err := form(d.stamp)
	if t.Fail(failed...); err == nil && t.Decided() {
		err = d.to.Note(ctx, t)
	}
	if err != nil {
		d.warn("decision log", "error", err)
	}
	d.last = said
}
