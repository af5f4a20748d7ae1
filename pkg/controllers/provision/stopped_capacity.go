package provision

import (
	"context"
	"errors"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/provisioning"
)

// startTries bounds how often one pass plans anew because EC2 does not start what was planned.
const startTries = 3

// startStopped starts the stopped instances that pods are to have. Where EC2 refuses some, the pods are planned anew
// without those, so that nodes are launched for them in the same pass. It returns the last decision with what it saw,
// and how many instances were asked for; s is brought up to date.
func startStopped(ctx context.Context, c *Controller, s *cluster.Snapshot, decided provisioning.Decision,
	start time.Time) (last provisioning.Decision, seen cluster.Snapshot, started int, err error) {
	seen = *s
	var errs []error
	for range startTries {
		starts := decided.Plan.Starts()
		if c.Stopped == nil || len(starts) == 0 {
			break
		}
		after, refused, startErr := c.Stopped.StartNodes(ctx, *s, starts)
		errs = append(errs, startErr)
		if *s, started = after, started+len(starts); !refused {
			break
		}
		next, ok := c.decideAndLog(ctx, *s, start)
		if !ok {
			break
		}
		seen, decided = *s, next
	}
	return decided, seen, started, errors.Join(errs...)
}
