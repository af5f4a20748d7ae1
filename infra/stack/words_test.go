package stack_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

// template is a synthesized template that can describe itself in a few lines a person can review.
type template struct {
	Resources map[string]resource
}

type resource struct {
	Type                string
	Properties          map[string]any
	DeletionPolicy      string
	UpdateReplacePolicy string
	DependsOn           []string
}

func words(t *testing.T, a assertions.Template) template {
	t.Helper()
	raw, err := json.Marshal(a.ToJSON())
	if err != nil {
		t.Fatal(err)
	}
	var out template
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// each calls f for the resources of a type, in the order of their ids without the hash that CDK adds.
func (t template) each(kind string, f func(id string, p map[string]any)) {
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		if r := t.Resources[id]; r.Type == kind {
			f(plainID(id), r.Properties)
		}
	}
}

func (t template) resources() string {
	count := map[string]int{}
	for _, r := range t.Resources {
		count[r.Type]++
	}
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(count)) {
		fmt.Fprintf(&b, "%d %s\n", count[kind], kind)
	}
	return b.String()
}

func (t template) functions() string {
	async := map[string]string{}
	t.each("AWS::Lambda::EventInvokeConfig", func(_ string, p map[string]any) {
		failures := "nobody"
		if to, ok := p["DestinationConfig"].(map[string]any); ok {
			failures = text(to["OnFailure"].(map[string]any)["Destination"])
		}
		async[text(p["FunctionName"])] = fmt.Sprintf("%s async: %v retries, at most %vs old, failures to %s",
			text(p["Qualifier"]), p["MaximumRetryAttempts"], p["MaximumEventAgeInSeconds"], failures)
	})
	var b strings.Builder
	t.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: %v %v handler=%v memory=%v timeout=%v alone=%v loops=%v tracing=%s role=%s log=%s\n  %s\n", text(p["FunctionName"]),
			p["Runtime"], text(p["Architectures"]), p["Handler"], text(p["MemorySize"]), p["Timeout"],
			p["ReservedConcurrentExecutions"], text(p["RecursiveLoop"]), text(p["TracingConfig"]), text(p["Role"]), logged(p["LoggingConfig"].(map[string]any)), cmp.Or(async[plainID(id)], "nobody invokes it asynchronously"))
		if vpc := p["VpcConfig"]; vpc != nil {
			fmt.Fprintf(&b, "  in %s\n", text(vpc))
		}
	})
	t.each("AWS::Lambda::Alias", func(_ string, p map[string]any) {
		fmt.Fprintf(&b, "%s:%s is version %s\n", text(p["FunctionName"]), p["Name"], text(p["FunctionVersion"]))
	})
	return b.String()
}

// logged is where a function logs, and how if that is said.
func logged(p map[string]any) string {
	if len(p) == 1 {
		return text(p["LogGroup"])
	}
	return text(p)
}

func (t template) environment() string {
	var b strings.Builder
	t.each("AWS::Lambda::Function", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s\n", id)
		env := p["Environment"].(map[string]any)["Variables"].(map[string]any)
		for _, name := range slices.Sorted(maps.Keys(env)) {
			fmt.Fprintf(&b, "  %s=%s\n", name, text(env[name]))
		}
	})
	return b.String()
}

func (t template) rules() string {
	var b strings.Builder
	t.each("AWS::Events::Rule", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: %s\n", id, text(p["EventPattern"]))
		for _, target := range p["Targets"].([]any) {
			target := target.(map[string]any)
			fmt.Fprintf(&b, "  to %s, retry %s, undelivered to %s\n", text(target["Arn"]), text(target["RetryPolicy"]), text(target["DeadLetterConfig"]))
		}
	})
	t.each("AWS::Scheduler::Schedule", func(id string, p map[string]any) {
		target := p["Target"].(map[string]any)
		fmt.Fprintf(&b, "%s: %v, window %s, %v in group %s\n  to %s as %s, retry %s, undelivered to %s\n", id, p["ScheduleExpression"], text(p["FlexibleTimeWindow"]), p["Name"],
			text(p["GroupName"]), text(target["Arn"]), text(target["RoleArn"]), text(target["RetryPolicy"]), text(target["DeadLetterConfig"]))
	})
	t.each("AWS::Scheduler::ScheduleGroup", func(id string, p map[string]any) { fmt.Fprintf(&b, "%s: group %v\n", id, p["Name"]) })
	t.each("AWS::Lambda::Permission", func(_ string, p map[string]any) {
		from := text(p["SourceArn"])
		if p["SourceArn"] == nil {
			from = fmt.Sprintf("a URL, authentication %v, only by it %v", p["FunctionUrlAuthType"], p["InvokedViaFunctionUrl"])
		}
		fmt.Fprintf(&b, "%v may %v %s from %s\n", p["Principal"], p["Action"], text(p["FunctionName"]), from)
	})
	t.each("AWS::Lambda::EventSourceMapping", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: %s to %s, %s at a time after %ss, %s at once, which say what failed: %s\n", id, text(p["EventSourceArn"]), text(p["FunctionName"]),
			text(p["BatchSize"]), text(p["MaximumBatchingWindowInSeconds"]), text(p["ScalingConfig"]), text(p["FunctionResponseTypes"]))
	})
	t.each("AWS::Lambda::Url", func(id string, p map[string]any) { fmt.Fprintf(&b, "%s: %s\n", id, text(p)) })
	return b.String()
}

func (t template) access() string {
	var b strings.Builder
	t.each("AWS::EKS::AccessEntry", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: cluster %s, %s as %v in groups %s\n", id, text(p["ClusterName"]), text(p["PrincipalArn"]), p["Type"], text(p["KubernetesGroups"]))
		if p["AccessPolicies"] != nil {
			fmt.Fprintf(&b, "  with %s\n", text(p["AccessPolicies"]))
		}
	})
	t.each("AWS::IAM::Role", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: name=%v trust=%s managed=%s\n", id, p["RoleName"], text(p["AssumeRolePolicyDocument"]), text(p["ManagedPolicyArns"]))
	})
	t.each("AWS::IAM::InstanceProfile", func(id string, p map[string]any) {
		fmt.Fprintf(&b, "%s: instance profile %v of %s\n", id, p["InstanceProfileName"], text(p["Roles"]))
	})
	return b.String()
}

// order is what setup is asked, and what waits for it.
func (t template) order() string {
	var b strings.Builder
	for _, kind := range []string{"Custom::JoinerPreflight", "Custom::JoinerSetup"} {
		t.each(kind, func(id string, p map[string]any) {
			if hash, ok := p["Manifests"].(string); ok && len(hash) == 16 {
				p["Manifests"] = "(hash)"
			}
			fmt.Fprintf(&b, "%s: %s\n", id, text(p))
		})
	}
	for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
		var after []string
		for _, d := range t.Resources[id].DependsOn {
			if !strings.HasSuffix(plainID(d), "Role") { // every function waits for its role
				after = append(after, plainID(d))
			}
		}
		if after != nil {
			fmt.Fprintf(&b, "%s after %s\n", plainID(id), strings.Join(after, " "))
		}
	}
	return b.String()
}

func (t template) storage() string {
	var b strings.Builder
	for _, kind := range []string{"AWS::S3::Bucket", "AWS::S3::BucketPolicy", "AWS::SQS::Queue", "AWS::SQS::QueuePolicy", "AWS::Logs::LogGroup", "AWS::SecretsManager::Secret"} {
		for _, id := range slices.Sorted(maps.Keys(t.Resources)) {
			if r := t.Resources[id]; r.Type == kind {
				fmt.Fprintf(&b, "%s: on delete %s; %s\n", plainID(id), strings.ToLower(r.DeletionPolicy), text(r.Properties))
			}
		}
	}
	return b.String()
}

// alarms are what rings when, and the texts with which it does.
func (t template) alarms(test *testing.T) string {
	var b strings.Builder
	t.each("AWS::CloudWatch::Alarm", func(_ string, p map[string]any) {
		a := readAlarm(test, p)
		m := a.Metrics[0]
		what := fmt.Sprintf("%s %s", m.Statistic, m.Series)
		if a.Expression != "" {
			what = strings.Replace(a.Expression, "FILL("+m.ID+", 0)", what, 1)
		}
		fmt.Fprintf(&b, "%s: %v %v of %s %d of %d periods of %ds; no data: %v\n  %v\n", a.Name, p["ComparisonOperator"], text(p["Threshold"]), what, a.Datapoints,
			a.Evaluated, a.Period, p["TreatMissingData"], p["AlarmDescription"])
		if got := text(p["AlarmActions"]); got != "Alarms" {
			fmt.Fprintf(&b, "  goes to %s\n", got)
		}
	})
	t.each("AWS::SNS::TopicPolicy", func(_ string, p map[string]any) { fmt.Fprintf(&b, "topic policy: %s\n", text(p["PolicyDocument"])) })
	return b.String()
}

// permissions are the statements of a function's role: actions, resources, and the conditions that must all hold.
func (t template) permissions(function string) string {
	var b strings.Builder
	t.each("AWS::IAM::Role", func(id string, p map[string]any) {
		if id != function+"Role" {
			return
		}
		for _, policy := range p["Policies"].([]any) {
			for _, s := range policy.(map[string]any)["PolicyDocument"].(map[string]any)["Statement"].([]any) {
				s := s.(map[string]any)
				if s["Effect"] != "Allow" {
					fmt.Fprintf(&b, "%v ", s["Effect"])
				}
				fmt.Fprintf(&b, "%v: %s\n", s["Sid"], text(s["Action"]))
				for _, r := range list(s["Resource"]) {
					fmt.Fprintf(&b, "  on %s\n", text(r))
				}
				when, _ := s["Condition"].(map[string]any)
				for _, op := range slices.Sorted(maps.Keys(when)) {
					tests := when[op].(map[string]any)
					for _, key := range slices.Sorted(maps.Keys(tests)) {
						fmt.Fprintf(&b, "  if %s %s = %s\n", op, key, text(tests[key]))
					}
				}
			}
		}
	})
	t.each("AWS::IAM::Policy", func(id string, _ map[string]any) {
		fmt.Fprintf(&b, "and policy %s, which permissions.go does not know\n", id)
	})
	return b.String()
}

// text writes a value of a template in one line: intrinsic functions as ${…}, objects sorted by key.
func text(v any) string {
	switch v := v.(type) {
	case []any:
		parts := make([]string, len(v))
		for i, e := range v {
			parts[i] = text(e)
		}
		return strings.Join(parts, " ")
	case map[string]any:
		if len(v) == 1 {
			for name, argument := range v {
				switch name {
				case "Ref":
					return reference(argument.(string))
				case "Fn::GetAtt":
					a := argument.([]any)
					return "${" + plainID(a[0].(string)) + "." + a[1].(string) + "}"
				case "Fn::Join":
					var b strings.Builder
					for _, part := range argument.([]any)[1].([]any) {
						b.WriteString(text(part))
					}
					return b.String()
				case "Fn::If": // or nothing
					choice := argument.([]any)
					return text(choice[1]) + " where " + choice[0].(string)
				}
			}
		}
		var parts []string
		for _, k := range slices.Sorted(maps.Keys(v)) {
			parts = append(parts, k+"="+text(v[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	default:
		return fmt.Sprint(v)
	}
}

// reference leaves our own resources as their id, and marks what CloudFormation fills in.
func reference(name string) string {
	if strings.HasPrefix(name, "AWS::") {
		return "${" + name + "}"
	}
	return plainID(name)
}

// plainID drops the eight digits of hash at the end of an id of CDK, and those of what a version stands for.
func plainID(id string) string {
	return regexp.MustCompile(`[0-9A-F]{8}([0-9a-f]{32})?$`).ReplaceAllString(id, "")
}

func list(v any) []any {
	if l, ok := v.([]any); ok {
		return l
	}
	return []any{v}
}
