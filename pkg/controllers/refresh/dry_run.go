package refresh

import (
	"context"
	"errors"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
)

// rehearsalTakes is time enough to look at classes and rehearse, and for what refresh does after that.
const rehearsalTakes = 30 * time.Second

// rehearsalPauses are waited for before launches are rehearsed again to which EC2 did not say anything, because it was
// throttled or out of reach. After that they have to wait for the next refresh.
func rehearsalPauses() []time.Duration {
	return []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second}
}

// noteUncertain notes whether the class is worth another look soon.
func (r *Controller) noteUncertain(c *awsv1.EC2NodeClass, v *nodeclass.DryRunVerdict) {
	if r.unsure == nil {
		r.unsure = map[string]bool{}
	}
	delete(r.unsure, c.Name)
	if v != nil && v.Unknown && !c.StatusConditions().IsTrue(awsv1.ConditionValidationSucceeded) {
		r.unsure[c.Name] = true
	}
}

// refreshUncertain looks once more at classes that are not ready because EC2 did not say anything, so that a new class
// need not wait for the next refresh. It gives up when the time left is short.
func (r *Controller) refreshUncertain(ctx context.Context) error {
	for _, d := range rehearsalPauses() {
		if end, ok := ctx.Deadline(); controllers.WasRefused(ctx) || len(r.unsure) == 0 || ok &&
			time.Until(end) < d+rehearsalTakes {
			return nil
		}
		if err := r.waitForRetry(ctx, d); err != nil {
			return err
		}
		if err := r.refreshObjects(ctx, func(c *awsv1.EC2NodeClass) bool { return r.unsure[c.Name] }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Controller) waitForRetry(ctx context.Context, d time.Duration) error {
	if r.Pause != nil {
		return r.Pause(ctx, d)
	}
	return controllers.WaitFor(ctx, d)
}

// dryRunClass asks whether something could be launched with the class, if all else is right with it and it was not
// asked a while ago. User data is made each time, which costs no call. asked is true when EC2 was asked.
func (r *Controller) dryRunClass(ctx context.Context, c *awsv1.EC2NodeClass, found nodeclass.Resolved,
	pools []v1.NodePool) (v *nodeclass.DryRunVerdict, asked bool, err error) {
	draft, now := c.DeepCopy(), r.Now()
	nodeclass.UpdateStatus(draft, found, now)
	if !draft.StatusConditions().IsTrue(awsv1.ConditionValidationSucceeded) {
		return nil, false, nil
	}
	in := launch.Input{Class: draft,
		Resolved: nodeclass.DescribeClass(draft), Cluster: r.Cluster}
	in.Resolved.ApplySettings(r.Rules.MemoryOverhead, r.Rules.ReservedENIs, r.Rules.OpenReservations,
		r.Rules.IPv6)
	if in.Resolved.Placement != nil {
		if in.Resolved.Placement = found.Placement; found.Placement == nil {
			return nil, false, nil // its condition says so
		}
	}
	all, _, err := r.Prices.ReadCatalog(ctx)
	if err != nil {
		return nil, false, err
	}
	in.Types = instancetypes.ResolveTypes(all, in.Resolved, nil, time.Time{})
	orders, err := launch.DryRunOrders(in, nodeclass.RehearsalClaims(draft, pools))
	if err != nil {
		v := nodeclass.JudgeDryRun(draft, err, now)
		return &v, false, nil
	}
	if why := launch.UnusableReason(in.Types); len(orders) == 0 && why != "" {
		v := nodeclass.NoTypeVerdict(why)
		return &v, false, nil
	}
	if kept, ok := nodeclass.RecallVerdict(draft, r.Deployed, now); ok {
		return &kept, false, nil
	}
	if len(orders) == 0 || r.Rehearse == nil {
		return nil, false, nil
	}
	err = r.rehearseOrders(ctx, c.Name, orders)
	verdict := nodeclass.JudgeDryRun(draft, err, now).AfterDeployment(r.Deployed, now)
	if err != nil && verdict.Reason == "" {
		r.Log.Warn("rehearsal of a launch with EC2NodeClass "+c.Name+" says nothing", "error", err)
	}
	return &verdict, true, nil
}

// rehearseOrders asks EC2 for one order after the other while it refuses one for its instance type: a policy that
// denies some types leaves others. One that EC2 takes is enough; else the first refusal tells.
func (r *Controller) rehearseOrders(ctx context.Context, class string, orders []launch.Order) (first error) {
	for _, o := range orders {
		err := r.Rehearse.DryRun(ctx, o)
		no, refused := errors.AsType[*launch.RefusedError](err)
		if first == nil {
			first = err
		}
		switch {
		case err == nil && first != nil:
			r.Log.Warn("EC2 refuses instance types to EC2NodeClass "+class+", others it takes", "error", first)
			return nil
		case err != nil && !refused:
			return err // nobody knows about this one
		case err == nil || !no.IsAboutType():
			return first
		}
	}
	return first
}
