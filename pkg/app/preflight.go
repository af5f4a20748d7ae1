package app

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/cfn"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/model/findings"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/settings"
)

// deniedPoll is between two questions that a permission is missing for. EKS answers few a second.
const deniedPoll = 5 * time.Second

// answerPreflight refuses a deployment that cannot work, with all that is wrong, and else says how the functions reach
// the cluster. It makes nothing.
func (c CustomResources) answerPreflight(ctx context.Context, set settings.Values, e cfn.Event,
	log *slog.Logger) (map[string]any, error) {
	cfg, err := c.AWS(ctx)
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	plan, before := plans(e, set.ClusterName, cfg.Region)
	account := discovery.Preflight{EKS: eks.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		EC2: ec2.NewFromConfig(cfg), Lambda: lambda.NewFromConfig(cfg)}
	facts, err := readPermitted(ctx, account.ReadFacts, plan, min(deniedPoll, c.Patience), c.Patience)
	if before != nil && plan.RollsBack(*before) && (err != nil || !facts.Cluster.Found) {
		log.Warn("a rollback goes on without what EKS says, with what the functions have", "error", err)
		facts, err = account.ReadDeployed(ctx, plan)
		if err != nil {
			return nil, err
		}
		return stackAttributes(facts.Cluster, preflight.ChooseMemory(plan, facts))
	}
	if err != nil {
		return nil, err
	}
	found := preflight.Check(plan, before, facts)
	for _, x := range found {
		if x.Level != findings.Broken {
			log.Warn(x.What, "about", x.About, "mend", x.Mend)
		}
	}
	if err := preflight.Refusal(found); err != nil {
		return nil, err
	}
	cluster := facts.Cluster
	// What cdk.json says of the cluster goes over what EKS says.
	cluster.Endpoint, cluster.CABundle = cmp.Or(set.ClusterEndpoint, cluster.Endpoint),
		cmp.Or(set.ClusterCABundle, cluster.CABundle)
	return stackAttributes(cluster, preflight.ChooseMemory(plan, facts))
}

// maxCABundle caps the certificate authority, in bytes, in a function's environment, of which there are 4 KB.
const maxCABundle = 3072

// stackAttributes returns what the stack gives the functions. It is what they are told of the cluster, so that none has
// to ask EKS, and the memory of those that read it, in MiB. Two fingerprints stand for them, with the memory and
// without: a function's version is made anew when that of what it is given changes, and then alone. Lambda publishes no
// second version of what did not change, which fails a deployment.
func stackAttributes(c preflight.Cluster, memory int) (map[string]any, error) {
	if len(c.CABundle) > maxCABundle {
		return nil, fmt.Errorf("the certificate authority of the cluster has %d characters, the functions' environment has room for %d: set clusterCABundle in cdk.json to the certificate that is in use",
			len(c.CABundle), maxCABundle)
	}
	size := strconv.Itoa(memory)
	reach := c.Endpoint + "\n" + c.CABundle + "\n" + c.ServiceCIDR
	return map[string]any{"Endpoint": c.Endpoint, "CABundle": c.CABundle, "ServiceCIDR": c.ServiceCIDR,
		"FunctionMemory": size, "MemoryLimit": settings.FunctionMemoryLimit(memory),
		"Fingerprint": fingerprint(reach + "\n" + size), "Reach": fingerprint(reach)}, nil
}

// fingerprint is short and another one for another text.
func fingerprint(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:8])
}

// plans returns what the stack is to make and, in an update, what it has made. An older version of the stack did not
// say all of it: then what is to be made counts as made.
func plans(e cfn.Event, cluster, region string) (plan preflight.StackPlan, before *preflight.StackPlan) {
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

// readFacts finds out the facts, and whether a permission was missing for that.
type readFacts func(context.Context, preflight.StackPlan) (preflight.Facts, bool, error)

// readPermitted asks again for a while when a permission is missing: what CloudFormation grants to a new role takes
// some seconds until it counts everywhere.
func readPermitted(ctx context.Context, read readFacts, p preflight.StackPlan,
	poll, patience time.Duration) (preflight.Facts, error) {
	within, end := context.WithTimeout(ctx, patience)
	defer end()
	for {
		facts, denied, err := read(ctx, p)
		if !denied || controllers.WaitFor(within, poll) != nil {
			return facts, err
		}
	}
}
