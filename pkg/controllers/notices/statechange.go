package notices

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/nodeclaim/interruption"
)

const parallelPods = 10

// clearNode keeps new pods off a node marked for deletion. Where an instance ends or has ended it takes the pods away
// too, and when it is gone it lets go of node and claim, in this order: once the claim is gone nobody looks after its
// node.
func (c *Controller) clearNode(ctx context.Context, o interruption.Response, n cluster.Node) error {
	if n.Name != "" && (o.DeleteClaim || !o.Claim.Deleting.IsZero()) && !o.Release {
		// A node that was replaced meanwhile needs no taint, and lifecycle sets it again.
		if err := c.Nodes.TaintForTermination(ctx, n); err != nil && !controllers.IsConflict(err) {
			return err
		}
	}
	if n.Name != "" && o.Pods != interruption.LeaveToDrain {
		if err := c.removePods(ctx, o.Pods, n); err != nil {
			return err
		}
	}
	if !o.Release {
		return nil
	}
	if n.Name != "" {
		if n.Deleting.IsZero() {
			if err := c.Nodes.DeleteNode(ctx, n); err != nil {
				return err
			}
		}
		if err := c.Nodes.ReleaseNode(ctx, n); err != nil {
			return err
		}
	}
	return c.Claims.ReleaseClaim(ctx, o.Claim)
}

func (c *Controller) removePods(ctx context.Context, rest interruption.PodRemoval, n cluster.Node) error {
	list, err := c.Pods.PodsOn(ctx, n.Name)
	if err != nil {
		return err
	}
	pods := lists.Index(list, cluster.Pod.Key)
	actions := interruption.RemovePods(rest, list)
	errs := make([]error, len(actions))
	controllers.ForEach(parallelPods, actions, func(k int, a plan.Action) {
		if controllers.TooLateToBegin(ctx) {
			errs[k] = lateError{}
			return
		}
		errs[k] = c.Shield().Do("pod "+a.Pod, func() error { return c.deleteEndedPod(ctx, a, pods[a.Pod]) })
	})
	if slices.Contains(errs, error(lateError{})) {
		return fmt.Errorf("remove the pods of node %s: %w", n.Name, lateError{})
	}
	if len(actions) > 0 {
		c.Log.Info("deleted pods of terminated instance", "node", n.Name, "count", len(actions), "why", actions[0].Why)
	}
	return errors.Join(errs...)
}

func (c *Controller) deleteEndedPod(ctx context.Context, a plan.Action, p cluster.Pod) error {
	if may, err := controllers.MayBegin(ctx, c.Log, a.String()); err != nil || !may {
		return err
	}
	if a.GraceSec == 0 {
		return c.Pods.RemovePod(ctx, p)
	}
	return c.Pods.DeletePod(ctx, p, a.GraceSec)
}
