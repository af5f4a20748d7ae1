package disrupt

import (
	"context"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/scheduling/binpack"
)

// decideWithin decides. An invocation that is cut off by its time-out loses what its pass learnt, and the next one
// would ask the same again, for ever. So when half of the time is over that there was in the beginning, and the
// decision not made, it is remembered that the next pass had better ask less; that is forgotten again when this one
// ends after all.
func (c *Controller) decideWithin(ctx context.Context, s cluster.Snapshot, m disruption.Memory,
	sells binpack.Offerings) (disruption.Plan, disruption.Memory, error) {
	decide := c.decide
	if decide == nil {
		decide = disruption.NextFrom
	}
	late := c.whenLate(ctx, func() {
		c.Log.Warn("disruption may run out of time: the next pass asks less unless this one ends")
		if err := c.writeMemory(ctx, m.RunLate(c.Now())); err != nil {
			c.Log.Warn("that disruption runs out of time is not remembered", "error", err)
		}
	})
	plan, next := decide(s, m, sells, c.Cache)
	next.Retained = m.Retained // until it is told what nodes stay for
	if !late() {
		return plan, next, nil
	}
	return plan, next, c.writeMemory(ctx, next.RunLate(c.Now())) // what is done now takes its time too
}

// whenLate calls what it is given, once, when half of the time that the context has is over, unless the function that
// it returns has been called before. That one reports whether it was called, and returns when it is done.
func (c *Controller) whenLate(ctx context.Context, do func()) func() bool {
	deadline, limited := ctx.Deadline()
	if !limited {
		return func() bool { return false }
	}
	done := make(chan struct{})
	timer := time.AfterFunc(time.Until(deadline)/2, func() {
		defer close(done)
		do()
	})
	return func() bool {
		if timer.Stop() {
			return false
		}
		<-done
		return true
	}
}
