package app

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner/pkg/install/preflight"
	"joiner/pkg/providers/discovery"
	"joiner/pkg/settings"
)

// deniedPoll is between two questions that a permission is missing for. EKS answers few a second.
const deniedPoll = 5 * time.Second

// answerPreflight refuses a deployment that cannot work, with all that is wrong. It makes nothing.
func (c CustomResources) answerPreflight(ctx context.Context, set settings.Values, e cfn.Event,
	log *slog.Logger) error {
	cfg, err := c.AWS(ctx)
	if err != nil {
		return fmt.Errorf("load aws configuration: %w", err)
	}
	plan, before := plans(e, set.ClusterName, cfg.Region)
	account := discovery.Preflight{EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg), EC2: ec2.NewFromConfig(cfg),
		Lambda: lambda.NewFromConfig(cfg)}
	facts, err := readPermitted(ctx, account.ReadFacts, plan, min(deniedPoll, c.Patience), c.Patience)
	if err != nil {
		return err
	}
	found := preflight.Check(plan, before, facts)
	for _, x := range found {
		if x.Level != preflight.Broken {
			log.Warn(x.What, "about", x.About, "mend", x.Mend)
		}
	}
	return preflight.Refusal(found)
}

// plans are what the stack is to make and, in an update, what it has made. An older version of the stack did not say
// all of it: then what is to be made counts as made.
func plans(e cfn.Event, cluster, region string) (plan preflight.Plan, before *preflight.Plan) {
	plan, _ = preflight.ReadPlan(e.ResourceProperties, region)
	plan.Cluster = cluster
	if e.RequestType != cfn.RequestUpdate {
		return plan, nil
	}
	old, whole := preflight.ReadPlan(e.OldResourceProperties, region)
	if !whole {
		reserved := old.Reserved
		old = plan
		if _, told := e.OldResourceProperties["Reserved"]; told {
			old.Reserved = reserved
		}
	}
	return plan, &old
}

// readFacts is how facts are found out, and whether a permission was missing for that.
type readFacts func(context.Context, preflight.Plan) (preflight.Facts, bool, error)

// readPermitted asks again for a while when a permission is missing: what CloudFormation grants to a new role takes some
// seconds until it counts everywhere.
func readPermitted(ctx context.Context, read readFacts, p preflight.Plan, poll, patience time.Duration) (preflight.Facts,
	error) {
	end := time.NewTimer(patience)
	defer end.Stop()
	for {
		facts, denied, err := read(ctx, p)
		if !denied {
			return facts, err
		}
		next := time.NewTimer(poll)
		select {
		case <-ctx.Done():
			next.Stop()
			return facts, err
		case <-end.C:
			next.Stop()
			return facts, err
		case <-next.C:
		}
	}
}
