package provision

import (
	"context"
	"slices"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// waitForBatch waits until no new pod has come for a while, so that those of a burst are packed together. Pods that
// have waited for longer anyway are not kept waiting, nor is anybody while nodes go away.
func (p *Controller) waitForBatch(ctx context.Context, pods []cluster.Pod, claims []cluster.Claim) error {
	if p.BatchIdle <= 0 || slices.ContainsFunc(claims, func(c cluster.Claim) bool { return !c.Deleting.IsZero() }) {
		return nil
	}
	for waited := time.Duration(0); p.podsArriving(pods) && waited+p.BatchIdle <= p.BatchMax; waited += p.BatchIdle {
		controllers.NoteStage(ctx, controllers.StageBatching)
		if err := controllers.WaitFor(ctx, p.BatchIdle); err != nil {
			return err
		}
		var err error
		if pods, err = p.Read.PendingPods(ctx); err != nil {
			return err
		}
	}
	return nil
}

// podsArriving reports whether some of the pods came since it was asked last, and came just now.
func (p *Controller) podsArriving(pods []cluster.Pod) bool {
	before := p.known
	p.known = make(map[string]bool, len(pods))
	young := p.Now().Add(-p.BatchIdle).Truncate(time.Second) // as pods say it
	arriving := false
	for _, pod := range pods {
		p.known[pod.UID] = true
		arriving = arriving || !pod.Virtual && !before[pod.UID] && !pod.Created.Before(young)
	}
	return arriving
}
