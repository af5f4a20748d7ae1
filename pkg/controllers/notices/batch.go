package notices

import (
	"context"
	"errors"
	"maps"
	"slices"

	"joiner.sh/events"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// HandleBatch handles events of the kind together, so that many cost little more than one. What it returns has an entry
// for each event: why it is worth handling again, nil where it is not.
func (c *Controller) HandleBatch(ctx context.Context, kind events.Kind, batch [][]byte) []error {
	var all []interruption.Notice
	var event []int // of each notice
	dropped := map[string]int{}
	for k, data := range batch {
		notices, why, err := c.Place.decodeNotices(kind, data)
		switch {
		case err != nil:
			c.Log.Error("ignored event", "kind", string(kind), "error", err)
			continue
		case why != "":
			dropped[why]++
			continue
		}
		known := c.Foreign.withoutForeign(notices, c.Now())
		if n := len(notices) - len(known); n > 0 {
			dropped["earlier ones were about an instance that is not ours"] += n
		}
		for _, n := range known {
			all, event = append(all, n), append(event, k)
		}
	}
	for _, why := range slices.Sorted(maps.Keys(dropped)) {
		c.Log.Info("dropped events", "kind", string(kind), "why", why, "count", dropped[why])
	}
	errs := make([]error, len(batch))
	for k, err := range c.handleTogether(ctx, all) {
		errs[event[k]] = errors.Join(errs[event[k]], err)
	}
	return errs
}

// handleTogether handles many notices, for which each function is woken a few times. It returns an error for each, nil
// for one that is done. That an instance goes down is not handled where another notice says that it has ended, which
// asks for more.
func (c *Controller) handleTogether(ctx context.Context, all []interruption.Notice) []error {
	ended := map[string]bool{}
	for _, n := range all {
		ended[n.Instance] = ended[n.Instance] || n.Kind == interruption.Ended
	}
	var left []interruption.Notice
	var at []int // of each, in all
	for k, n := range all {
		if n.Kind != interruption.Ending || !ended[n.Instance] {
			left, at = append(left, n), append(at, k)
		}
	}
	together := *c
	together.Provision, together.Lifecycle = newSharedWaker(c.Provision), newSharedWaker(c.Lifecycle)
	errs := make([]error, len(all))
	for k, err := range together.handleAll(ctx, left, true) {
		errs[at[k]] = err
	}
	return errs
}
