package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"joiner.sh/events"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/cli/accept"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// mostPages bounds each list.
const mostPages = 200

// readTags reads what in EC2 has a tag, by type and id. An empty value stands for every one.
func (w *liveWorld) readTags(ctx context.Context, key, value string) (out []ec2types.TagDescription, err error) {
	filters := []ec2types.Filter{{Name: aws.String("key"), Values: []string{key}}}
	if value != "" {
		filters = append(filters, ec2types.Filter{Name: aws.String("value"), Values: []string{value}})
	}
	pages := ec2.NewDescribeTagsPaginator(ec2.NewFromConfig(w.cfg), &ec2.DescribeTagsInput{Filters: filters})
	for page, err := range paging.Bounded(ctx, mostPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("look up tag %s: %w", key, err)
		}
		out = append(out, page.Tags...)
	}
	return out, nil
}

// readLeft reads what of runs in this cluster there is in AWS.
func (w *liveWorld) readLeft(ctx context.Context) (out []string, err error) {
	tags, err := w.readTags(ctx, accept.Mark, accept.Owner(w.run.Cluster)+"*")
	if err != nil {
		return nil, err
	}
	var instances []string
	for _, t := range tags {
		switch t.ResourceType {
		case ec2types.ResourceTypeInstance:
			instances = append(instances, aws.ToString(t.ResourceId))
		case ec2types.ResourceTypeFleet, ec2types.ResourceTypeSpotInstancesRequest:
			// records of what was asked for, which EC2 keeps for a while when it is over
		default:
			out = append(out, string(t.ResourceType)+" "+aws.ToString(t.ResourceId))
		}
	}
	alive, err := w.describe(ctx, instances)
	if err != nil {
		return nil, err
	}
	for _, i := range alive {
		if i.State.Name != ec2types.InstanceStateNameTerminated { // which EC2 shows for an hour
			out = append(out, fmt.Sprintf("instance %s (%s)", aws.ToString(i.InstanceId), i.State.Name))
		}
	}
	profiles, err := w.readProfiles(ctx)
	for _, p := range profiles {
		if slices.ContainsFunc(p.Tags, func(t iamtypes.Tag) bool {
			return aws.ToString(t.Key) == accept.Mark || aws.ToString(t.Key) == awsv1.TagEC2NodeClass && aws.ToString(t.Value) == accept.Name
		}) {
			out = append(out, "instance profile "+aws.ToString(p.InstanceProfileName))
		}
	}
	return out, err
}

// describe reads instances that may be gone.
func (w *liveWorld) describe(ctx context.Context, ids []string) (out []ec2types.Instance, err error) {
	if len(ids) == 0 {
		return nil, nil
	}
	pages := ec2.NewDescribeInstancesPaginator(ec2.NewFromConfig(w.cfg), &ec2.DescribeInstancesInput{
		Filters: []ec2types.Filter{{Name: aws.String("instance-id"), Values: ids}}})
	for page, err := range paging.Bounded(ctx, mostPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("look for instances: %w", err)
		}
		for _, r := range page.Reservations {
			out = append(out, r.Instances...)
		}
	}
	return out, nil
}

// readProfiles reads the instance profiles that were made for classes of the cluster, with their tags.
func (w *liveWorld) readProfiles(ctx context.Context) (out []iamtypes.InstanceProfile, err error) {
	c := iam.NewFromConfig(w.cfg)
	pages := iam.NewListInstanceProfilesPaginator(c, &iam.ListInstanceProfilesInput{
		PathPrefix: aws.String("/karpenter/" + w.cfg.Region + "/" + w.run.Cluster + "/")})
	for page, err := range paging.Bounded(ctx, mostPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("list instance profiles: %w", err)
		}
		for _, p := range page.InstanceProfiles {
			one, err := c.GetInstanceProfile(ctx, &iam.GetInstanceProfileInput{InstanceProfileName: p.InstanceProfileName})
			if awserrors.IsMissing(err) {
				continue
			}
			if err != nil {
				return nil, fmt.Errorf("read instance profile: %w", err)
			}
			out = append(out, *one.InstanceProfile)
		}
	}
	return out, nil
}

// Inventory reads everything that a run must leave as it was.
func (w *liveWorld) Inventory(ctx context.Context) ([]accept.Item, error) {
	var out []accept.Item
	for _, path := range []string{atPools, atClasses, atClaims} {
		err := w.l.kube.Objects.List(ctx, path, func(o *unstructured.Unstructured) error {
			i := accept.Item{Kind: o.GetKind(), ID: o.GetName()}
			if path != atClaims {
				i.State = fmt.Sprintf("%s/%d", o.GetUID(), o.GetGeneration())
			}
			if o.GetName() != accept.Name && !strings.HasPrefix(o.GetLabels()[accept.Mark], accept.Owner(w.run.Cluster)) {
				out = append(out, i)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	tags, err := w.readTags(ctx, awsv1.TagClusterName, w.run.Cluster)
	if err != nil {
		return nil, err
	}
	for _, t := range tags {
		out = append(out, accept.Item{Kind: string(t.ResourceType), ID: aws.ToString(t.ResourceId)})
	}
	profiles, err := w.readProfiles(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range profiles {
		i := accept.Item{Kind: "instance profile", ID: aws.ToString(p.InstanceProfileName), State: "of no role"}
		if len(p.Roles) > 0 {
			i.State = aws.ToString(p.Roles[0].RoleName)
		}
		out = append(out, i)
	}
	rules, policy, err := w.readRoute(ctx, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range rules {
		out = append(out, accept.Item{Kind: "rule", ID: r.Name, State: fmt.Sprint(r.Enabled, r.Targets)})
	}
	if sum := sha256.Sum256([]byte(policy)); policy != "" {
		out = append(out, accept.Item{Kind: "policy of function", ID: w.names.Function(noticeFunction), State: hex.EncodeToString(sum[:8])})
	}
	return out, nil
}

// aliasARN returns the ARN that rules have for a target.
func (w *liveWorld) aliasARN() string {
	return fmt.Sprintf("arn:%s:lambda:%s:%s:function:%s:%s", w.at.Partition, w.at.Region, w.at.Account,
		w.names.Function(noticeFunction), functionAlias)
}

// functionAlias is the alias by which events and functions invoke a function of the stack.
const functionAlias = "live"

// sendNotice looks once more whether the instance is the run's own, and whether a notice of EC2 would get to the
// function; then it invokes the function with one, or has FIS cause one.
func (w *liveWorld) sendNotice(ctx context.Context, victim accept.Claim) error {
	target, zone, err := w.readTarget(ctx, victim)
	if err != nil {
		return err
	}
	if why := accept.TargetProblems(target, w.run, victim); len(why) > 0 {
		return fmt.Errorf("no notice was sent: %s", strings.Join(why, ", "))
	}
	sample, err := events.KindSpotInterruption.Sample()
	if err != nil {
		return err
	}
	event, err := accept.NoticeEvent(sample, w.at, zone, victim.Instance, w.Now())
	if err != nil {
		return err
	}
	rules, policy, err := w.readRoute(ctx, event)
	if err != nil {
		return err
	}
	if why := accept.RouteProblems(w.aliasARN(), rules, policy); len(why) > 0 {
		return &foundError{"EC2's notices do not get to the function: " + strings.Join(why, ", ")}
	}
	if w.run.FIS != "" {
		return w.startExperiment(ctx, victim.Instance)
	}
	out, err := lambda.NewFromConfig(w.cfg).Invoke(ctx, &lambda.InvokeInput{FunctionName: aws.String(w.names.Function(noticeFunction)),
		Qualifier: aws.String(functionAlias), Payload: event})
	if err != nil {
		return fmt.Errorf("invoke %s: %w", w.names.Function(noticeFunction), err)
	}
	if out.FunctionError != nil {
		return fmt.Errorf("function %s ended with %s", w.names.Function(noticeFunction), out.Payload)
	}
	return nil
}

// readTarget reads the instance anew, from the cluster and from EC2.
func (w *liveWorld) readTarget(ctx context.Context, victim accept.Claim) (t accept.Target, zone string, err error) {
	pool, found, err := w.l.kube.Objects.Get(ctx, accept.AtPool)
	if err != nil || !found {
		return t, "", errors.Join(err, errors.New("read the NodePool of the run"))
	}
	claims, err := w.readClaims(ctx)
	if err != nil {
		return t, "", err
	}
	t.Mark = pool.GetLabels()[accept.Mark]
	for _, c := range claims {
		if t.Claims = append(t.Claims, c.Name); c.Name == victim.Name {
			t.Instance = c.Instance
		}
	}
	instances, err := w.describe(ctx, []string{victim.Instance})
	if err != nil || len(instances) != 1 {
		return t, "", errors.Join(err, fmt.Errorf("EC2 describes %d instances %s", len(instances), victim.Instance))
	}
	i := instances[0]
	t.State, t.Spot, t.Tags = string(i.State.Name), i.InstanceLifecycle == ec2types.InstanceLifecycleTypeSpot, map[string]string{}
	for _, tag := range i.Tags {
		t.Tags[aws.ToString(tag.Key)] = aws.ToString(tag.Value)
	}
	return t, aws.ToString(i.Placement.AvailabilityZone), nil
}

// readRoute reads the rules that have the function's alias for a target, and its policy. With an event EventBridge is
// asked whether their patterns match it.
func (w *liveWorld) readRoute(ctx context.Context, event []byte) (rules []accept.Rule, policy string, err error) {
	var names struct{ RuleNames []string }
	err = jsonAction{"events", "AWSEvents.ListRuleNamesByTarget"}.ask(ctx, w.cfg,
		map[string]any{"TargetArn": w.aliasARN()}, &names)
	if err != nil {
		return nil, "", err
	}
	for _, name := range names.RuleNames {
		var rule struct{ Arn, State, EventPattern string }
		var targets struct{ Targets []struct{ Arn string } }
		err := errors.Join(
			jsonAction{"events", "AWSEvents.DescribeRule"}.ask(ctx, w.cfg, map[string]any{"Name": name}, &rule),
			jsonAction{"events", "AWSEvents.ListTargetsByRule"}.ask(ctx, w.cfg, map[string]any{"Rule": name}, &targets))
		if err != nil {
			return nil, "", err
		}
		one := accept.Rule{Name: name, ARN: rule.Arn, Enabled: strings.HasPrefix(rule.State, "ENABLED")}
		for _, t := range targets.Targets {
			one.Targets = append(one.Targets, t.Arn)
		}
		if event != nil {
			var test struct{ Result bool }
			err := jsonAction{"events", "AWSEvents.TestEventPattern"}.ask(ctx, w.cfg,
				map[string]any{"EventPattern": rule.EventPattern, "Event": string(event)}, &test)
			if err != nil {
				return nil, "", err
			}
			one.Matches = test.Result
		}
		rules = append(rules, one)
	}
	got, err := lambda.NewFromConfig(w.cfg).GetPolicy(ctx, &lambda.GetPolicyInput{FunctionName: aws.String(w.names.Function(noticeFunction)),
		Qualifier: aws.String(functionAlias)})
	if awserrors.IsMissing(err) {
		return rules, "", nil
	}
	if err != nil {
		return nil, "", fmt.Errorf("read the policy of the function: %w", err)
	}
	return rules, aws.ToString(got.Policy), nil
}
