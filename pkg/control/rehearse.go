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
