package assembly

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// reader files one resource of its type in the assembly.
type reader func(a *Assembly, s *stack, i item) error

func resourceReaders() map[string]reader {
	return map[string]reader{
		"AWS::Lambda::Function":           readFunction,
		"AWS::Lambda::Alias":              readAlias,
		"AWS::Lambda::EventInvokeConfig":  readInvokeConfig,
		"AWS::Lambda::Permission":         readPermission,
		"AWS::Lambda::Url":                readURL,
		"AWS::Lambda::EventSourceMapping": readMapping,
		"AWS::Events::Rule":               readRule,
		"AWS::Scheduler::Schedule":        readSchedule,
		"AWS::IAM::Role":                  readRole,
		"AWS::IAM::Policy":                readPolicy,
		"AWS::IAM::ManagedPolicy":         readPolicy,
		"AWS::IAM::InstanceProfile":       readInstanceProfile,
		"AWS::SQS::Queue":                 readQueue,
		"AWS::SQS::QueuePolicy":           readQueuePolicy,
		"AWS::S3::Bucket":                 readBucket,
		"AWS::EKS::AccessEntry":           readAccessEntry,
	}
}

func readFunction(a *Assembly, s *stack, i item) error {
	var p struct {
		FunctionName, Role, Handler  string
		Runtime, PackageType         string
		Architectures                []string
		Environment                  struct{ Variables map[string]string }
		Timeout                      int64
		MemorySize                   any
		ReservedConcurrentExecutions *int
		DeadLetterConfig             struct{ TargetArn string }
		Code                         struct{ S3Key string }
		RecursiveLoop                string
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if p.PackageType == "Image" || p.Code.S3Key == "" {
		return errors.New("only code of a zip asset can be run")
	}
	code, err := s.assets.codePath(p.Code.S3Key)
	if err != nil {
		return err
	}
	memory, like, err := readMemory(p.MemorySize)
	if err != nil {
		return err
	}
	name, arn := s.resourceIdentity(i)
	f := Function{
		Resource: i.Resource, Name: name, ARN: arn, RoleARN: p.Role, Handler: p.Handler, Runtime: p.Runtime,
		Architecture: "x86_64", Environment: p.Environment.Variables, Code: code,
		Timeout: secondsOr(p.Timeout, 3), MemoryMB: memory, MemoryLike: like,
		Reserved: p.ReservedConcurrentExecutions, DeadLetterARN: p.DeadLetterConfig.TargetArn,
		Async: Async{Retries: 2, MaxAge: 6 * time.Hour}, MayLoop: p.RecursiveLoop == "Allow",
	}
	if f.Short = i.LogicalID; p.FunctionName != "" {
		f.Short = p.FunctionName[strings.LastIndex(p.FunctionName, "-")+1:]
	}
	if len(p.Architectures) > 0 {
		f.Architecture = p.Architectures[0]
	}
	a.Functions = append(a.Functions, f)
	return nil
}

// readMemory reads MemorySize, which CloudFormation takes as a text too. What only a custom resource knows is like its
// answer, and Lambda's least until then.
func readMemory(size any) (memoryMB int64, like string, err error) {
	const least = 128
	switch v := size.(type) {
	case nil:
		return least, "", nil
	case float64:
		return max(int64(v), least), "", nil
	case string:
		if strings.Contains(v, answerMark) {
			return least, v, nil
		}
		n, err := strconv.ParseInt(v, 10, 64)
		if err != nil {
			return 0, "", fmt.Errorf("read MemorySize: %w", err)
		}
		return max(n, least), "", nil
	}
	return 0, "", fmt.Errorf("MemorySize is a %T", size)
}

// readAlias notes the alias on its function. Every alias is the version that was built: there is no other here.
func readAlias(a *Assembly, _ *stack, i item) error {
	var p struct{ FunctionName, Name string }
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	find := func(a *Assembly) error {
		f := a.FindFunction(p.FunctionName)
		if f == nil {
			return fmt.Errorf("%s: function %s is not in the assembly", i.LogicalID, p.FunctionName)
		}
		f.Aliases = append(f.Aliases, p.Name)
		return nil
	}
	a.pending = slices.Insert(a.pending, 0, find) // before what goes by the alias
	return nil
}

// readInvokeConfig only notes the settings; attach gives them to the function, which may come later in the template.
func readInvokeConfig(a *Assembly, s *stack, i item) error {
	var p struct {
		FunctionName, Qualifier  string
		MaximumRetryAttempts     *int
		MaximumEventAgeInSeconds int64
		DestinationConfig        struct {
			OnFailure, OnSuccess struct{ Destination string }
		}
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if p.DestinationConfig.OnSuccess.Destination != "" {
		return errors.New("on-success destinations are not known here")
	}
	async := Async{Retries: 2, MaxAge: secondsOr(p.MaximumEventAgeInSeconds, 6*3600),
		OnFailureARN: p.DestinationConfig.OnFailure.Destination, Qualifier: p.Qualifier}
	if p.MaximumRetryAttempts != nil {
		async.Retries = *p.MaximumRetryAttempts
	}
	a.pending = append(a.pending, func(a *Assembly) error {
		f := a.FindFunction(p.FunctionName + ":" + p.Qualifier)
		if f == nil {
			return fmt.Errorf("%s: function %s:%s is not in the assembly", i.LogicalID, p.FunctionName, p.Qualifier)
		}
		if f.Async.Qualifier != "" {
			return fmt.Errorf("%s: function %s has settings for %s already; here all of its aliases are one",
				i.LogicalID, f.Name, f.Async.Qualifier)
		}
		f.Async = async
		return nil
	})
	return nil
}

func readPermission(a *Assembly, _ *stack, i item) error {
	var p struct {
		Action, FunctionName, Principal, SourceArn, SourceAccount string
		FunctionURLAuthType                                       string `json:"FunctionUrlAuthType"`
		InvokedViaFunctionURL                                     bool   `json:"InvokedViaFunctionUrl"`
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	a.pending = append(a.pending, func(a *Assembly) error {
		f := a.FindFunction(p.FunctionName)
		if f == nil {
			return fmt.Errorf("%s: function %s is not in the assembly", i.LogicalID, p.FunctionName)
		}
		a.Permissions = append(a.Permissions, Permission{
			Resource: i.Resource, Action: p.Action, FunctionARN: f.ARN, Principal: p.Principal,
			SourceARN: p.SourceArn, SourceAccount: p.SourceAccount, URLAuthType: p.FunctionURLAuthType,
			ViaURL: p.InvokedViaFunctionURL,
		})
		return nil
	})
	return nil
}

func readURL(a *Assembly, s *stack, i item) error {
	var p struct{ TargetFunctionArn, AuthType, Qualifier, InvokeMode string }
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if p.AuthType != "NONE" || p.InvokeMode != "" && p.InvokeMode != "BUFFERED" {
		return fmt.Errorf("authentication %s, mode %s: only NONE and BUFFERED are known here", p.AuthType, p.InvokeMode)
	}
	answers, err := s.knownAttributes(i.LogicalID, s.template.Resources[i.LogicalID])
	if err != nil {
		return err
	}
	address := fmt.Sprint(answers["FunctionUrl"])
	a.pending = append(a.pending, func(a *Assembly) error {
		ref := p.TargetFunctionArn
		if p.Qualifier != "" {
			ref += ":" + p.Qualifier
		}
		f := a.FindFunction(ref)
		if f == nil {
			return fmt.Errorf("%s: function %s is not in the assembly", i.LogicalID, ref)
		}
		f.URL = &URL{AuthType: p.AuthType, Address: address}
		return nil
	})
	return nil
}

// readMapping notes what a queue hands to a function. Other event sources are refused.
func readMapping(a *Assembly, _ *stack, i item) error {
	var p struct {
		FunctionName, EventSourceArn   string
		BatchSize                      int
		MaximumBatchingWindowInSeconds int64
		Enabled                        *bool
		FunctionResponseTypes          []string
		ScalingConfig                  struct{ MaximumConcurrency int }
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if !strings.HasPrefix(p.EventSourceArn, "arn:aws:sqs:") || p.Enabled != nil && !*p.Enabled {
		return fmt.Errorf("event source %s: only queues are known here, enabled", p.EventSourceArn)
	}
	m := Mapping{Resource: i.Resource, QueueARN: p.EventSourceArn, BatchSize: cmp.Or(p.BatchSize, 10),
		Window:         time.Duration(p.MaximumBatchingWindowInSeconds) * time.Second,
		MaxConcurrency: p.ScalingConfig.MaximumConcurrency,
		Partial:        slices.Contains(p.FunctionResponseTypes, "ReportBatchItemFailures")}
	a.pending = append(a.pending, func(a *Assembly) error {
		f := a.FindFunction(p.FunctionName)
		if f == nil {
			return fmt.Errorf("%s: function %s is not in the assembly", i.LogicalID, p.FunctionName)
		}
		m.FunctionARN = f.ARN
		a.Mappings = append(a.Mappings, m)
		return nil
	})
	return nil
}

// targetProperties is a target as rules and schedules write it. What would change the event is refused.
type targetProperties struct {
	ID                          string `json:"Id"`
	Arn, RoleArn, Input         string
	InputPath, InputTransformer json.RawMessage
	RetryPolicy                 struct {
		MaximumRetryAttempts     *int
		MaximumEventAgeInSeconds int64
	}
	DeadLetterConfig struct{ Arn string }
}

func (p targetProperties) toTarget() (Target, error) {
	t := Target{
		ID: p.ID, ARN: p.Arn, RoleARN: p.RoleArn, Input: p.Input, MaxRetries: p.RetryPolicy.MaximumRetryAttempts,
		MaxAge: secondsOr(p.RetryPolicy.MaximumEventAgeInSeconds, 24*3600), DeadLetterARN: p.DeadLetterConfig.Arn,
	}
	if p.InputPath != nil || p.InputTransformer != nil {
		return t, fmt.Errorf("target %s: input path and transformer are not known here", p.ID)
	}
	if !strings.HasPrefix(p.Arn, "arn:aws:lambda:") && !strings.HasPrefix(p.Arn, "arn:aws:sqs:") {
		return t, fmt.Errorf("target %s: %s is neither a function nor a queue", p.ID, p.Arn)
	}
	return t, nil
}

func readRule(a *Assembly, s *stack, i item) error {
	var p struct {
		State, ScheduleExpression, EventBusName string
		EventPattern                            json.RawMessage
		Targets                                 []targetProperties
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if p.EventBusName != "" && p.EventBusName != "default" {
		return fmt.Errorf("event bus %s: only the default bus exists here", p.EventBusName)
	}
	name, arn := s.resourceIdentity(i)
	r := Rule{
		Resource: i.Resource, Name: name, ARN: arn, Enabled: p.State != "DISABLED",
		Schedule: p.ScheduleExpression, Pattern: p.EventPattern,
	}
	if r.Schedule == "" && r.Pattern == nil {
		return errors.New("neither schedule nor event pattern")
	}
	for _, tp := range p.Targets {
		t, err := tp.toTarget()
		if err != nil {
			return err
		}
		r.Targets = append(r.Targets, t)
	}
	a.Rules = append(a.Rules, r)
	return nil
}

func readSchedule(a *Assembly, s *stack, i item) error {
	var p struct {
		State, ScheduleExpression, ScheduleExpressionTimezone string
		StartDate, EndDate                                    string
		Target                                                targetProperties
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	if p.StartDate != "" || p.EndDate != "" {
		return errors.New("start and end date are not known here")
	}
	t, err := p.Target.toTarget()
	if err != nil {
		return err
	}
	name, arn := s.resourceIdentity(i)
	a.Schedules = append(a.Schedules, Schedule{
		Resource: i.Resource, Name: name, ARN: arn, Enabled: p.State != "DISABLED",
		Expression: p.ScheduleExpression, Timezone: p.ScheduleExpressionTimezone, Target: t,
	})
	return nil
}

func readQueue(a *Assembly, s *stack, i item) error {
	var p struct {
		MessageRetentionPeriod, VisibilityTimeout int64
		RedrivePolicy                             struct {
			DeadLetterTargetArn string `json:"deadLetterTargetArn"`
			MaxReceiveCount     int    `json:"maxReceiveCount"`
		}
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	name, arn := s.resourceIdentity(i)
	a.Queues = append(a.Queues, Queue{
		Resource: i.Resource, Name: name, ARN: arn,
		URL:       fmt.Sprintf("https://sqs.%s.amazonaws.com/%s/%s", s.place.Region, s.place.Account, name),
		Retention: secondsOr(p.MessageRetentionPeriod, 4*24*3600), Visibility: secondsOr(p.VisibilityTimeout, 30),
		DeadLetterARN: p.RedrivePolicy.DeadLetterTargetArn, MaxReceives: p.RedrivePolicy.MaxReceiveCount,
	})
	return nil
}

func readQueuePolicy(a *Assembly, _ *stack, i item) error {
	var p struct {
		Queues         []string
		PolicyDocument json.RawMessage
	}
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	a.pending = append(a.pending, func(a *Assembly) error {
		for _, url := range p.Queues {
			q := a.queueByURL(url)
			if q == nil {
				return fmt.Errorf("%s: queue %s is not in the assembly", i.LogicalID, url)
			}
			q.Policies = append(q.Policies, p.PolicyDocument)
		}
		return nil
	})
	return nil
}

func readBucket(a *Assembly, s *stack, i item) error {
	name, arn := s.resourceIdentity(i)
	a.Buckets = append(a.Buckets, Bucket{Resource: i.Resource, Name: name, ARN: arn})
	return nil
}

func readCustomResource(a *Assembly, _ *stack, i item) error {
	var p struct{ ServiceToken string }
	if err := i.decodeProperties(&p); err != nil {
		return err
	}
	a.CustomResources = append(a.CustomResources, CustomResource{Resource: i.Resource, ServiceToken: p.ServiceToken,
		Properties: i.properties})
	return nil
}

// resourceIdentity gives the physical name and ARN. Both have been resolved once before by then, or need nothing to be.
func (s *stack) resourceIdentity(i item) (name, arn string) {
	r := s.template.Resources[i.LogicalID]
	name, _ = s.physicalName(i.LogicalID, r)
	answers, _ := s.knownAttributes(i.LogicalID, r)
	arn, _ = answers["Arn"].(string)
	return name, arn
}

// secondsOr turns a template's number into a duration; 0 stands for the service's default.
func secondsOr(n, otherwise int64) time.Duration {
	if n == 0 {
		n = otherwise
	}
	return time.Duration(n) * time.Second
}
