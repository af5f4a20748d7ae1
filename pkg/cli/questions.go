package cli

import (
	"cmp"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	ec2types "github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"joiner.sh/pkg/cli/accept"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// questioner asks an account what no document settles, in a stack of its own.
type questioner struct {
	cfg       aws.Config
	stack, id string
	outputs   map[string]string // of the stack
	instance  string
	types     []string // that a fleet is offered, the cheapest first
	rest      func(ctx context.Context, d time.Duration) error
	answers   []accept.Answer
}

// question is one of them. Its answer is also an error, if that is what AWS says.
type question struct {
	text string
	ask  func(ctx context.Context) (string, error)
}

// runQuestions asks all questions, prints the answers and removes the stack.
func (f acceptFlags) runQuestions(ctx context.Context, term terminalOutput, in io.Reader, id string) error {
	cfg, err := f.awsConfig(ctx)
	if err != nil {
		return err
	}
	load, err := f.readCatalog(ctx)
	if err != nil {
		return err
	}
	q := &questioner{cfg: cfg, id: id, stack: "joiner-questions-" + id, rest: restFor, types: accept.OfferedTypes(load)}
	if err := term.writeText(accept.QuestionsText(q.stack)); err != nil {
		return err
	}
	f.cluster = q.stack
	if err := f.confirm(term, in, "make the stack"); err != nil {
		return err
	}
	asked := q.askAll(ctx, term.writeMessage)
	// what was made goes even if whoever asked went
	removed := q.remove(context.WithoutCancel(ctx))
	if err := writeJSON(term.out, q.answers); err != nil {
		return err
	}
	if removed != nil {
		removed = fmt.Errorf("stack %s is left, delete it: %w", q.stack, removed)
	}
	return errors.Join(asked, removed)
}

// restFor waits so long.
func restFor(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// askAll makes the stack and asks one question after the other.
func (q *questioner) askAll(ctx context.Context, tell func(string, ...any)) error {
	status, err := q.change(ctx, "CreateStack", questionInput{words: "first"})
	if err != nil || status != "CREATE_COMPLETE" {
		return errors.Join(err, fmt.Errorf("stack %s is %s", q.stack, status))
	}
	for _, one := range q.questions() {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		answer, err := one.ask(ctx)
		if err != nil {
			answer = strings.TrimSpace(answer + " error " + strings.TrimSpace(awserrors.CodeOf(err)+" "+err.Error()))
		}
		q.answers = append(q.answers, accept.Answer{Question: one.text, Answer: answer})
		tell("%s\n    %s", one.text, answer)
	}
	return nil
}

func (q *questioner) questions() []question {
	return []question{
		{"What is the state of a breaching alarm a minute after its creation?", q.askAlarm},
		{"Does PublishVersion publish again when only the description differs?", q.askVersions},
		{"Is a custom resource whose update failed asked again, and where does the stack end?", func(ctx context.Context) (string, error) {
			return q.change(ctx, "UpdateStack", questionInput{words: "second", refuse: true})
		}},
		{"Which versions are there after the rollback, and does PublishVersion give another one?", q.askRollback},
		{"Does the same update, refused by nobody, pass after the rollback?", func(ctx context.Context) (string, error) {
			return q.change(ctx, "UpdateStack", questionInput{words: "second"})
		}},
		{"Does CloudFormation publish a version when only its description changes?", func(ctx context.Context) (string, error) {
			return q.change(ctx, "UpdateStack", questionInput{words: "second", about: "two"})
		}},
		{"Does PutQueryDefinition take a log group that does not exist?", q.askQuery},
		{"How long after PutRolePolicy does a dry run of RunInstances pass?", q.askPolicy},
		{"CreateFleet instant with one token: how long with 250 overrides?", q.askFleet},
		{"CreateFleet instant with the same token again: are its instances listed?", q.askFleet},
		{"TerminateInstances of a protected instance, as a dry run?", func(ctx context.Context) (string, error) { return q.askProtected(ctx, true) }},
		{"TerminateInstances of a protected instance?", func(ctx context.Context) (string, error) { return q.askProtected(ctx, false) }},
	}
}

// questionInput are the parameters of the stack.
type questionInput struct {
	words  string // of the function's environment, and of the description of its version
	about  string // more of the description
	refuse bool   // the custom resource refuses an update
}

// stackPoll and mostPolls bound the wait for a stack.
const (
	stackPoll = 5 * time.Second
	mostPolls = 180
)

// change creates or updates the stack and waits for the end. The answer is its status, after an update with what failed.
func (q *questioner) change(ctx context.Context, action string, in questionInput) (string, error) {
	begun := time.Now().UTC().Format(time.RFC3339)
	_, err := askStacks(ctx, q.cfg, action, map[string]string{"StackName": q.stack, "TemplateBody": accept.QuestionStack,
		"Capabilities.member.1": "CAPABILITY_IAM", "Tags.member.1.Key": accept.Mark, "Tags.member.1.Value": q.id,
		"Parameters.member.1.ParameterKey": "Words", "Parameters.member.1.ParameterValue": in.words,
		"Parameters.member.2.ParameterKey": "Refuse", "Parameters.member.2.ParameterValue": strconv.FormatBool(in.refuse),
		"Parameters.member.3.ParameterKey": "About", "Parameters.member.3.ParameterValue": cmp.Or(in.about, "one")})
	if err != nil {
		return "", err
	}
	status, err := q.await(ctx)
	if err != nil || action == "CreateStack" {
		return status, err
	}
	text, err := askStacks(ctx, q.cfg, "DescribeStackEvents", map[string]string{"StackName": q.stack})
	var events struct {
		All []struct {
			LogicalResourceID string `xml:"LogicalResourceId"`
			ResourceStatus    string
			Reason            string `xml:"ResourceStatusReason"`
			Timestamp         string
		} `xml:"DescribeStackEventsResult>StackEvents>member"`
	}
	if err == nil {
		err = xml.Unmarshal(text, &events)
	}
	for i := len(events.All) - 1; i >= 0; i-- {
		if e := events.All[i]; e.Timestamp >= begun && (e.LogicalResourceID == "Asked" || e.LogicalResourceID == "Version") {
			status += fmt.Sprintf("; %s %s %s", e.LogicalResourceID, e.ResourceStatus, e.Reason)
		}
	}
	return status, err
}

// await waits until nothing of the stack is under way, and reads its outputs. An empty status is that of no stack.
func (q *questioner) await(ctx context.Context) (status string, err error) {
	for range mostPolls {
		stack, err := describeStack(ctx, q.cfg, q.stack)
		if err != nil {
			return status, err
		}
		q.outputs = map[string]string{}
		for _, o := range stack.Outputs {
			q.outputs[o.OutputKey] = o.OutputValue
		}
		if status = stack.Status; !strings.HasSuffix(status, "_IN_PROGRESS") {
			return status, nil
		}
		if err := q.rest(ctx, stackPoll); err != nil {
			return status, err
		}
	}
	return status, fmt.Errorf("stack %s is %s for too long", q.stack, status)
}

func (q *questioner) output(name string) *string { return aws.String(q.outputs[name]) }

func (q *questioner) askAlarm(ctx context.Context) (string, error) {
	if err := q.rest(ctx, time.Minute); err != nil {
		return "", err
	}
	out, err := cloudwatch.NewFromConfig(q.cfg).DescribeAlarms(ctx, &cloudwatch.DescribeAlarmsInput{AlarmNames: []string{q.outputs["Alarm"]}})
	if err != nil || len(out.MetricAlarms) != 1 {
		return "", errors.Join(err, errors.New("there is no such alarm"))
	}
	return fmt.Sprintf("%s: %s", out.MetricAlarms[0].StateValue, aws.ToString(out.MetricAlarms[0].StateReason)), nil
}

func (q *questioner) askVersions(ctx context.Context) (string, error) {
	c, numbers := lambda.NewFromConfig(q.cfg), []string{}
	for _, words := range []string{"one", "one", "another"} {
		out, err := c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: q.output("Function"), Description: &words})
		if err != nil {
			return strings.Join(numbers, ", "), err
		}
		numbers = append(numbers, words+": version "+aws.ToString(out.Version))
	}
	return strings.Join(numbers, ", "), nil
}

// askRollback lists what is published, and publishes what was put back.
func (q *questioner) askRollback(ctx context.Context) (string, error) {
	c, found := lambda.NewFromConfig(q.cfg), []string{}
	out, err := c.ListVersionsByFunction(ctx, &lambda.ListVersionsByFunctionInput{FunctionName: q.output("Function")})
	if err != nil {
		return "", err
	}
	for _, v := range out.Versions {
		found = append(found, fmt.Sprintf("%s (%s)", aws.ToString(v.Version), aws.ToString(v.Description)))
	}
	made, err := c.PublishVersion(ctx, &lambda.PublishVersionInput{FunctionName: q.output("Function"), Description: aws.String("after the rollback")})
	if err != nil {
		return strings.Join(found, ", "), err
	}
	return fmt.Sprintf("%s; PublishVersion gives %s (%s)", strings.Join(found, ", "), aws.ToString(made.Version), aws.ToString(made.Description)), nil
}

// askQuery asks CloudWatch Logs, whose SDK nothing else needs.
func (q *questioner) askQuery(ctx context.Context) (string, error) {
	var made struct {
		ID string `json:"queryDefinitionId"`
	}
	err := jsonAction{"logs", "Logs_20140328.PutQueryDefinition"}.ask(ctx, q.cfg, map[string]any{"name": q.stack,
		"queryString": "fields @message", "logGroupNames": []string{"/" + q.stack + "/none"}}, &made)
	if err != nil {
		return "", err
	}
	return "it takes it", jsonAction{"logs", "Logs_20140328.DeleteQueryDefinition"}.ask(ctx, q.cfg,
		map[string]any{"queryDefinitionId": made.ID}, nil)
}

const policyName = "questions"

func (q *questioner) askPolicy(ctx context.Context) (string, error) {
	roles := iam.NewFromConfig(q.cfg)
	assumed, err := sts.NewFromConfig(q.cfg).AssumeRole(ctx, &sts.AssumeRoleInput{RoleArn: q.output("Role"), RoleSessionName: aws.String("questions")})
	if err != nil {
		return "assume the role:", err
	}
	cfg := q.cfg.Copy()
	cfg.Credentials = aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
		return aws.Credentials{AccessKeyID: aws.ToString(assumed.Credentials.AccessKeyId), SecretAccessKey: aws.ToString(assumed.Credentials.SecretAccessKey),
			SessionToken: aws.ToString(assumed.Credentials.SessionToken)}, nil
	})
	_, err = roles.PutRolePolicy(ctx, &iam.PutRolePolicyInput{RoleName: q.output("RoleName"), PolicyName: aws.String(policyName),
		PolicyDocument: aws.String(`{"Version":"2012-10-17","Statement":[{"Effect":"Allow","Action":["ec2:RunInstances","ec2:DescribeImages"],"Resource":"*"}]}`)})
	if err != nil {
		return "put the policy:", err
	}
	begun, code := time.Now(), ""
	for time.Since(begun) < 2*time.Minute && code != "DryRunOperation" && ctx.Err() == nil {
		_, err = ec2.NewFromConfig(cfg).RunInstances(ctx, &ec2.RunInstancesInput{DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			LaunchTemplate: &ec2types.LaunchTemplateSpecification{LaunchTemplateId: q.output("Template")}})
		if code = awserrors.CodeOf(err); code != "DryRunOperation" && q.rest(ctx, time.Second) != nil {
			break
		}
	}
	_, err = roles.DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: q.output("RoleName"), PolicyName: aws.String(policyName)})
	return fmt.Sprintf("%s after %.0f s", code, time.Since(begun).Seconds()), err
}

func (q *questioner) askFleet(ctx context.Context) (string, error) {
	begun := time.Now()
	var overrides []ec2types.FleetLaunchTemplateOverridesRequest
	for _, name := range q.types {
		overrides = append(overrides, ec2types.FleetLaunchTemplateOverridesRequest{InstanceType: ec2types.InstanceType(name)})
	}
	mark := []ec2types.Tag{{Key: aws.String(accept.Mark), Value: &q.id}}
	out, err := ec2.NewFromConfig(q.cfg).CreateFleet(ctx, &ec2.CreateFleetInput{Type: ec2types.FleetTypeInstant, ClientToken: &q.stack,
		TargetCapacitySpecification: &ec2types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: ec2types.DefaultTargetCapacityTypeOnDemand},
		// Nothing dearer than a t4g.nano is launched, whatever the overrides say.
		OnDemandOptions:       &ec2types.OnDemandOptionsRequest{MaxTotalPrice: aws.String("0.008"), AllocationStrategy: ec2types.FleetOnDemandAllocationStrategyLowestPrice},
		TagSpecifications:     []ec2types.TagSpecification{{ResourceType: ec2types.ResourceTypeInstance, Tags: mark}, {ResourceType: ec2types.ResourceTypeVolume, Tags: mark}},
		LaunchTemplateConfigs: []ec2types.FleetLaunchTemplateConfigRequest{{Overrides: overrides, LaunchTemplateSpecification: &ec2types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateId: q.output("Template"), Version: aws.String("$Latest")}}}})
	if err != nil {
		return "", err
	}
	var ids []string
	for _, i := range out.Instances {
		ids = append(ids, i.InstanceIds...)
	}
	if len(ids) > 0 {
		q.instance = ids[0]
	}
	return fmt.Sprintf("%d instances, %d errors, after %.1f s", len(ids), len(out.Errors), time.Since(begun).Seconds()), nil
}

func (q *questioner) askProtected(ctx context.Context, dry bool) (string, error) {
	if q.instance == "" {
		return "there is no instance to ask about", nil
	}
	c := ec2.NewFromConfig(q.cfg)
	if err := q.protect(ctx, true); err != nil {
		return "protect it:", err
	}
	_, err := c.TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{q.instance}, DryRun: &dry})
	return "", errors.Join(err, q.protect(ctx, false))
}

func (q *questioner) protect(ctx context.Context, on bool) error {
	_, err := ec2.NewFromConfig(q.cfg).ModifyInstanceAttribute(ctx, &ec2.ModifyInstanceAttributeInput{InstanceId: &q.instance,
		DisableApiTermination: &ec2types.AttributeBooleanValue{Value: &on}})
	return err
}

// remove ends the instance, and deletes the stack with what was published and allowed beside it.
func (q *questioner) remove(ctx context.Context) error {
	var errs []error
	if q.instance != "" {
		errs = append(errs, q.protect(ctx, false))
		_, err := ec2.NewFromConfig(q.cfg).TerminateInstances(ctx, &ec2.TerminateInstancesInput{InstanceIds: []string{q.instance}})
		errs = append(errs, err)
	}
	if name := q.outputs["RoleName"]; name != "" {
		_, err := iam.NewFromConfig(q.cfg).DeleteRolePolicy(ctx, &iam.DeleteRolePolicyInput{RoleName: &name, PolicyName: aws.String(policyName)})
		if !awserrors.IsMissing(err) {
			errs = append(errs, err)
		}
	}
	if _, err := askStacks(ctx, q.cfg, "DeleteStack", map[string]string{"StackName": q.stack}); err != nil {
		return errors.Join(append(errs, err)...)
	}
	status, err := q.await(ctx)
	if err == nil && status != "" && status != "DELETE_COMPLETE" {
		err = fmt.Errorf("stack %s is %s", q.stack, status)
	}
	return errors.Join(append(errs, err)...)
}
