package control

import (
	"context"
	"time"

	awsv1 "joiner/pkg/api/aws/v1"
	v1 "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/launch"
	"joiner/pkg/nodeclass"
)

// Rehearser asks EC2 whether it would take an order.
type Rehearser interface {
	// Rehearse launches nothing. It returns a *launch.RefusedError when EC2 would not. May be repeated.
	Rehearse(ctx context.Context, o launch.Order) error
}

// rehearsalTakes is time enough to look at classes and rehearse, and for what refresh does after that.
const rehearsalTakes = 30 * time.Second

// rehearsalPauses are waited for before launches are rehearsed again to which EC2 did not say anything, because it was throttled or out
// of reach. After that they have to wait for the next refresh.
func rehearsalPauses() []time.Duration {
	return []time.Duration{2 * time.Second, 5 * time.Second, 15 * time.Second}
}

// doubt notes whether the class is worth another look soon.
func (r *Refresh) doubt(c *awsv1.EC2NodeClass, v *nodeclass.Verdict) {
	if r.unsure == nil {
		r.unsure = map[string]bool{}
	}
	delete(r.unsure, c.Name)
	if v != nil && v.Unknown && !c.StatusConditions().IsTrue(awsv1.ConditionValidationSucceeded) {
		r.unsure[c.Name] = true
	}
}

// again looks once more at classes that are not ready because EC2 did not say anything, so that a new class need not wait for the next
// refresh (spec aws.md §1.7). It gives up when the time left is short.
func (r *Refresh) again(ctx context.Context) error {
	for _, d := range rehearsalPauses() {
		if end, ok := ctx.Deadline(); len(r.unsure) == 0 || ok && time.Until(end) < d+rehearsalTakes {
			return nil
		}
		if err := r.wait(ctx, d); err != nil {
			return err
		}
		if err := r.objects(ctx, func(c *awsv1.EC2NodeClass) bool { return r.unsure[c.Name] }); err != nil {
			return err
		}
	}
	return nil
}

func (r *Refresh) wait(ctx context.Context, d time.Duration) error {
	if r.Pause != nil {
		return r.Pause(ctx, d)
	}
	return pause(ctx, d)
}

// rehearse asks whether something could be launched with the class, if all else is right with it and it was not asked a while ago. User
// data is made each time, which costs no call. asked is true when EC2 was asked.
func (r *Refresh) rehearse(ctx context.Context, c *awsv1.EC2NodeClass, found nodeclass.Found, pools []v1.NodePool) (v *nodeclass.Verdict, asked bool, err error) {
	draft, now := c.DeepCopy(), r.Now()
	nodeclass.Update(draft, found, now)
	if !draft.StatusConditions().IsTrue(awsv1.ConditionValidationSucceeded) {
		return nil, false, nil
	}
	in := launch.Input{Claim: nodeclass.RehearsalClaim(draft, pools), Class: draft, Resolved: nodeclass.Describe(draft), Cluster: r.Cluster}
	in.Resolved.MemoryOverhead, in.Resolved.ReservedENIs = r.Rules.MemoryOverhead, r.Rules.ReservedENIs
	if in.Resolved.Placement != nil {
		if in.Resolved.Placement = found.Placement; found.Placement == nil {
			return nil, false, nil // its condition says so
		}
	}
	all, _, err := r.Prices.Catalog(ctx)
	if err != nil {
		return nil, false, err
	}
	in.Types = catalog.Resolve(all, in.Resolved, nil, time.Time{})
	o, possible, err := launch.Rehearsal(in)
	if err != nil {
		v := nodeclass.Judge(draft, err, now)
		return &v, false, nil
	}
	if why := launch.Unusable(in.Types); !possible && why != "" {
		v := nodeclass.Useless(why)
		return &v, false, nil
	}
	if kept, ok := nodeclass.Recall(draft, now); ok {
		return &kept, false, nil
	}
	if !possible || r.Rehearse == nil {
		return nil, false, nil
	}
	err = r.Rehearse.Rehearse(ctx, o)
	verdict := nodeclass.Judge(draft, err, now)
	if err != nil && verdict.Reason == "" {
		r.Log.Warn("rehearsal of a launch with EC2NodeClass "+c.Name+" says nothing", "error", err)
	}
	return &verdict, true, nil
}
