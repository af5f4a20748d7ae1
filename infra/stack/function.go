package stack

import (
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambdadestinations"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/events"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/settings"
)

// function says what one Lambda function is given; what is the same for all is in addFunction.
type function struct {
	name       string // also the folder below functions/ and the end of the physical name
	id         string // in the template
	doc        string
	timeoutSec float64
	everyMin   float64       // 0: no schedule
	rules      []events.Kind // events that invoke it, besides the schedule
	alone      bool          // never two at a time
	urgent     int           // invocations reserved for events that leave two minutes; nobody is to keep them waiting
	admin      bool          // administers the cluster, instead of being in a group of its own
	// Asynchronous invocations: retries after an error, and the age at which an event is not worth handling any more.
	retries   float64
	maxAgeSec float64
	asksEKS   bool // when the cluster has another certificate authority, for the others too
	queued    bool // its events come in batches through a queue, so that no flood of them takes concurrency from others
	direct    bool // invoked as the code that is deployed last, not by its alias
	// outside of any VPC, whatever the settings say, and without a way into the cluster: it can answer while the
	// network of the others is not there yet, or not any more.
	outside bool
	allows  func(permissions) []statement

	// called is for the function behind the webhook of push. Anybody may call it, so a call must cost next to nothing:
	// it has little memory, neither traces nor Lambda's own log lines, and no way into the cluster.
	called bool
}

// inCluster reports whether the function is told how to reach the cluster. Setup asks EKS itself.
func (f function) inCluster() bool { return !f.called && !f.admin && !f.outside }

// handlesInterruptions reports whether the function is for notices that EC2 takes an instance back or stops it.
func (f function) handlesInterruptions() bool {
	return slices.ContainsFunc(f.rules, func(k events.Kind) bool {
		return k == events.KindSpotInterruption || k == events.KindReservationInterruption ||
			k == events.KindRebalance || k == events.KindScheduledChange
	})
}

// wokenByOthers reports whether another function invokes it that it may invoke itself, which Lambda takes for an
// endless loop.
func (f function) wokenByOthers() bool { return f.ticks() && f.name != "disrupt" }

// ticks reports whether a schedule invokes the function.
func (f function) ticks() bool { return f.everyMin > 0 }

// loses reports whether an invocation can be lost that nothing makes good. What a function with a schedule missed or
// failed on, its next tick does, so it has no dead letters: a tick that aged behind a busy function is no lost work.
// Nor is a call of the webhook, or of the preflight, without whose answer CloudFormation goes no further.
func (f function) loses() bool { return !f.ticks() && !f.called && !f.outside }

// aliasName is the alias by which everything invokes a function. Moving it to an older version is the way back from a
// bad deployment.
const aliasName = "live"

// A scheduled function is not retried and drops ticks older than a minute: the next tick does the same work. Events
// come once, so they are retried, and kept longer than the two-minute notice because a late clean-up is still one.
func (p Props) functions() []function {
	all := []function{
		// First, because the others are given what it finds out of the cluster. It asks AWS only. Until it has answered
		// there is nothing else of the stack but its own role and log.
		{name: "preflight", id: "Preflight", doc: "says what keeps the stack from being deployed, before anything is made",
			timeoutSec: 120, direct: true, outside: true, retries: 1, maxAgeSec: 900, allows: preflightAllows},
		// A drain may take all the time there is. A second try is for a process that died; CloudFormation takes the
		// first answer.
		{name: "setup", id: "Setup", doc: "installs CRDs and RBAC, and lets go of the cluster at the end",
			timeoutSec: 900, admin: true, direct: true, retries: 1, maxAgeSec: 900, allows: setupAllows},
		{name: "provision", id: "Provision", doc: "launches capacity for pods that have nowhere to run",
			timeoutSec: 60, everyMin: 1, alone: true, maxAgeSec: 60, allows: provisionAllows},
		{name: "lifecycle", id: "Lifecycle", doc: "takes the next step for every NodeClaim and deleted node",
			timeoutSec: 60, everyMin: 1, alone: true, maxAgeSec: 60, allows: lifecycleAllows},
		{name: "disrupt", id: "Disrupt", doc: "decides which nodes go by choice: empty, drifted or too dear",
			timeoutSec: 60, everyMin: 1, alone: true, maxAgeSec: 60, allows: disruptAllows},
		{name: "refresh", id: "Refresh", doc: "keeps the catalog and the status of every EC2NodeClass fresh",
			timeoutSec: 120, everyMin: settings.RefreshInterval.Minutes(), alone: true, maxAgeSec: 60,
			asksEKS: true, allows: refreshAllows,
			rules: []events.Kind{events.KindDeployed}},
		{name: "spotinterruption", id: "SpotInterruption", doc: "moves pods off a spot instance that EC2 takes back",
			timeoutSec: 60, urgent: p.Stack.InterruptionConcurrency, retries: 2, maxAgeSec: 300, allows: wakesBoth,
			rules: []events.Kind{events.KindSpotInterruption}},
		{name: "reservationinterruption", id: "ReservationInterruption",
			doc:        "moves pods off an instance that loses its capacity reservation",
			timeoutSec: 60, urgent: p.ReservationConcurrency, retries: 2, maxAgeSec: 300, allows: wakesBoth,
			rules: []events.Kind{events.KindReservationInterruption}},
		// Its events are about all instances of the account, most of others.
		{name: "statechange", id: "StateChange", doc: "brings running instances into service and lets go of ended ones",
			timeoutSec: 30, queued: true, allows: wakesBoth,
			rules: []events.Kind{events.KindStateChange}},
		// A recommendation of an hour ago says little.
		{name: "rebalance", id: "Rebalance", doc: "tells of recommendations to leave a spot instance, or has its node replaced",
			timeoutSec: 60, retries: 2, maxAgeSec: 3600, allows: wakesProvision,
			rules: []events.Kind{events.KindRebalance}},
		// Announced days ahead and delivered once.
		{name: "scheduledchange", id: "ScheduledChange",
			doc:        "has nodes left before EC2 reboots, stops or retires their instances",
			timeoutSec: 60, retries: 2, maxAgeSec: 21600, allows: wakesBoth,
			rules: []events.Kind{events.KindScheduledChange}},
	}
	if !p.Stack.InterruptionHandling {
		all = slices.DeleteFunc(all, function.handlesInterruptions)
	}
	if p.Functions.Trigger == settings.TriggerPush {
		// The API server waits a second. Nobody invokes it but by its URL, so there is nothing to retry.
		all = append(all, function{name: "wake", id: "Wake", doc: "takes the calls of the cluster's webhook",
			timeoutSec: 2, alone: true, called: true, maxAgeSec: 60, allows: wakesBoth})
	}
	return all
}

// reserved returns how much of the account's concurrency is the function's alone, and all that it gets; 0 for none.
func (p Props) reserved(f function) int {
	switch {
	case f.alone:
		return 1
	}
	return f.urgent
}

const (
	memoryMiB       = 512
	memoryCalledMiB = 128

	growth = "400" // percent by which memory grows until garbage is collected
)

// addFunction makes a function with everything that belongs to it alone: role, access entry, log group, alias,
// dead-letter queue, schedule and rules.
func (s *joiner) addFunction(f function) error {
	name := s.functionName(f.name)
	logs := awslogs.NewLogGroup(s.Stack, jsii.String(f.id+"Logs"), &awslogs.LogGroupProps{
		LogGroupName: jsii.String("/aws/lambda/" + name),
		Retention:    retention(s.props.Stack.LogRetentionDays),
		// a name of our own: left behind, it would stop the next deployment
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
		EncryptionKey: s.key,
	})
	made := madeFunction{function: f, logs: logs, deadLetters: s.addDeadLetters(f)}
	made.queue = s.addQueue(made)
	role, entry := s.addRole(made, *logs.LogGroupArn())
	props := &awslambda.FunctionProps{
		FunctionName: &name,
		Description:  jsii.String(version.Describe(f.name + ": " + f.doc)),
		Runtime:      awslambda.Runtime_PROVIDED_AL2023(),
		Architecture: s.props.architecture(),
		Handler:      jsii.String("bootstrap"),
		Code:         s.programs[f.name].code(),
		MemorySize:   s.memorySize(f),
		Timeout:      awscdk.Duration_Seconds(&f.timeoutSec),
		Environment:  s.environment(f),
		LogGroup:     logs,
		// every permission is written in permissions.go, none added behind our back
		Role:                  role.WithoutPolicyUpdates(nil),
		Tracing:               awslambda.Tracing_DISABLED,
		EnvironmentEncryption: s.key,
		CurrentVersionOptions: &awslambda.VersionOptions{
			// To go back to. What an update published that failed goes: Lambda would not publish the same again.
			RemovalPolicy: awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
			Description:   s.versionDescription(f),
		},
	}
	if f.called {
		props.LoggingFormat, props.SystemLogLevelV2 = awslambda.LoggingFormat_JSON, awslambda.SystemLogLevel_WARN
	} else {
		if !f.outside {
			props.Vpc, props.VpcSubnets, props.SecurityGroups = s.net.vpc, s.net.subnets, s.net.groups
		}
		if s.props.Stack.Tracing {
			props.Tracing = awslambda.Tracing_ACTIVE
		}
	}
	if n := s.props.reserved(f); n > 0 {
		props.ReservedConcurrentExecutions = jsii.Number(n)
	}
	made.fn, made.role, made.entry = awslambda.NewFunction(s.Stack, &f.id, props), role, entry
	if f.wokenByOthers() { // one at a time, there is nothing to run away
		setWhere(loopDetection, resourceOf(made.fn), "RecursiveLoop", "Allow")
	}
	made.entrance = s.addEntrance(made)
	s.mapQueue(made)
	if entry != nil {
		s.entries = append(s.entries, entry)
	}
	made.schedule = s.ticks.addSchedule(s, made)
	return s.addRules(made)
}

// versionDescription says what the preflight found of which the function is given something. That is no part of what
// CDK tells versions apart by; another description makes another version. It changes with what the function is given
// alone, because Lambda publishes no version that is like the last, and CloudFormation then fails.
func (s *joiner) versionDescription(f function) *string {
	if !f.inCluster() {
		return nil
	}
	attribute := "Reach"
	if f.alone {
		attribute = "Fingerprint"
	}
	return awscdk.Fn_Join(jsii.String(" "), &[]*string{
		jsii.String("Joiner for the cluster as of"), s.preflight.GetAttString(&attribute)})
}

// memoryMiB is settings.Auto for a function that gets what the preflight answers, be it chosen or given: a number that
// is what was chosen changes nothing.
func (p Props) memoryMiB(f function) int {
	switch {
	case f.called:
		return memoryCalledMiB
	case f.alone:
		return settings.Auto
	}
	return memoryMiB
}

func (s *joiner) memorySize(f function) *float64 {
	if n := s.props.memoryMiB(f); n != settings.Auto {
		return jsii.Number(n)
	}
	return awscdk.Token_AsNumber(s.preflight.GetAtt(jsii.String("FunctionMemory")))
}

// memoryLimit is the part of the memory from which on garbage is collected however little memory has grown.
func (s *joiner) memoryLimit(f function) *string {
	if n := s.props.memoryMiB(f); n != settings.Auto {
		return jsii.String(settings.FunctionMemoryLimit(n))
	}
	return s.preflight.GetAttString(jsii.String("MemoryLimit"))
}

func (p Props) architecture() awslambda.Architecture {
	if p.Stack.Architecture == "x86_64" {
		return awslambda.Architecture_X86_64()
	}
	return awslambda.Architecture_ARM_64()
}

// addDeadLetters makes the queue for events that a function could not handle; nil for one that loses none.
func (s *joiner) addDeadLetters(f function) awssqs.Queue {
	if !f.loses() {
		return nil
	}
	props := queueProps(s.key)
	props.RetentionPeriod = awscdk.Duration_Days(jsii.Number(14))
	return awssqs.NewQueue(s.Stack, jsii.String(f.id+"DeadLetters"), props)
}

// addEntrance makes what invokes the function: its alias, or the function itself. How asynchronous invocations are
// treated belongs to it.
func (s *joiner) addEntrance(m madeFunction) awslambda.IFunction {
	if m.queued { // nothing invokes it asynchronously
		return awslambda.NewAlias(s.Stack, jsii.String(m.id+"Alias"), &awslambda.AliasProps{
			AliasName: jsii.String(aliasName), Version: m.fn.CurrentVersion(),
			Description: jsii.String("What the queue of events invokes"),
		})
	}
	age := awscdk.Duration_Seconds(&m.maxAgeSec)
	var failures awslambda.IDestination
	if m.deadLetters != nil {
		failures = awslambdadestinations.NewSqsDestination(m.deadLetters)
	}
	if m.direct {
		m.fn.ConfigureAsyncInvoke(&awslambda.EventInvokeConfigOptions{RetryAttempts: &m.retries, MaxEventAge: age,
			OnFailure: failures})
		return m.fn
	}
	return awslambda.NewAlias(s.Stack, jsii.String(m.id+"Alias"), &awslambda.AliasProps{
		AliasName: jsii.String(aliasName), Version: m.fn.CurrentVersion(),
		Description:   jsii.String("What schedule, events and the other functions invoke"),
		RetryAttempts: &m.retries, MaxEventAge: age, OnFailure: failures,
	})
}

// addRole makes the execution role and lets it into the cluster, as the group joiner-<function> or as an administrator;
// or not at all.
func (s *joiner) addRole(f madeFunction, logGroup string) (awsiam.Role, awscdk.CfnResource) {
	p := s.permissions()
	statements := append(p.commonAllows(f, logGroup), f.allows(p)...)
	if s.props.Functions.Mode == settings.ModeObserve {
		statements = slices.DeleteFunc(statements, func(st statement) bool { return st.changes })
	}
	role := awsiam.NewRole(s.Stack, jsii.String(f.id+"Role"), &awsiam.RoleProps{
		Path:           s.rolePath(),
		AssumedBy:      awsiam.NewServicePrincipal(jsii.String("lambda.amazonaws.com"), nil),
		Description:    jsii.String("Joiner " + f.name + " in cluster " + s.cluster),
		InlinePolicies: &map[string]awsiam.PolicyDocument{"joiner": document(statements)},
	})
	if f.called || f.outside {
		return role, nil
	}
	access := &awseks.CfnAccessEntryProps{ClusterName: &s.cluster, PrincipalArn: role.RoleArn(),
		Type: jsii.String("STANDARD")}
	if f.admin && s.props.Functions.Manifests != settings.ManifestsExternal {
		access.AccessPolicies = s.adminPolicy()
	} else {
		access.KubernetesGroups = jsii.Strings("joiner-" + f.name)
	}
	return role, awseks.NewCfnAccessEntry(s.Stack, jsii.String(f.id+"Access"), access)
}

// environment carries the settings to the functions: what was written in cdk.json and what only the stack knows.
func (s *joiner) environment(f function) *map[string]*string {
	env := map[string]*string{
		// Lambda charges for time and not for memory in use: garbage piles up, and is collected before it is too much.
		"GOGC":       jsii.String(growth),
		"GOMEMLIMIT": s.memoryLimit(f),

		"PROVISION_FUNCTION": jsii.String(s.functionName("provision") + ":" + aliasName),
		"LIFECYCLE_FUNCTION": jsii.String(s.functionName("lifecycle") + ":" + aliasName),
		"REFRESH_FUNCTION":   jsii.String(s.functionName("refresh") + ":" + aliasName),
	}
	if !f.outside { // which answers before there is a bucket
		env["CATALOG_BUCKET"] = s.bucket.BucketName()
	}
	if f.inCluster() {
		env["CLUSTER_ENDPOINT"] = s.preflight.GetAttString(jsii.String("Endpoint"))
		env["CLUSTER_CA_BUNDLE"] = s.preflight.GetAttString(jsii.String("CABundle"))
		env["SERVICE_CIDR"] = s.preflight.GetAttString(jsii.String("ServiceCIDR"))
	}
	// unless the user says otherwise: no endpoint leads to IAM and to the price list
	if len(s.props.Stack.VPCEndpoints) > 0 {
		env["ISOLATED_VPC"] = jsii.String("true")
	}
	if f.direct { // to tell its own stack's requests from others
		env["STACK_ID"] = s.StackId()
	}
	if f.admin { // whom it wakes at the end, when the alias is gone
		env["LIFECYCLE_FUNCTION"] = jsii.String(s.functionName("lifecycle"))
	}
	if s.secret != nil && (f.called || f.admin) {
		env["PUSH_PATH"] = s.secret.SecretValue().UnsafeUnwrap()
	}
	for _, key := range sortedKeys(s.props.Given) {
		if _, answered := env[key]; answered && strings.HasPrefix(key, "CLUSTER_") {
			continue // by the preflight, which is given it
		}
		env[key] = jsii.String(s.props.Given[key])
	}
	return &env
}

// retention is the enum of CDK for a number of days that pkg/settings allows.
func retention(days int) awslogs.RetentionDays {
	words := map[int]awslogs.RetentionDays{
		1: awslogs.RetentionDays_ONE_DAY, 3: awslogs.RetentionDays_THREE_DAYS,
		5: awslogs.RetentionDays_FIVE_DAYS, 7: awslogs.RetentionDays_ONE_WEEK,
		14: awslogs.RetentionDays_TWO_WEEKS, 30: awslogs.RetentionDays_ONE_MONTH,
		60: awslogs.RetentionDays_TWO_MONTHS, 90: awslogs.RetentionDays_THREE_MONTHS,
		120: awslogs.RetentionDays_FOUR_MONTHS, 150: awslogs.RetentionDays_FIVE_MONTHS,
		180: awslogs.RetentionDays_SIX_MONTHS, 365: awslogs.RetentionDays_ONE_YEAR,
		400: awslogs.RetentionDays_THIRTEEN_MONTHS, 545: awslogs.RetentionDays_EIGHTEEN_MONTHS,
		731: awslogs.RetentionDays_TWO_YEARS, 1096: awslogs.RetentionDays_THREE_YEARS,
		1827: awslogs.RetentionDays_FIVE_YEARS, 2192: awslogs.RetentionDays_SIX_YEARS,
		2557: awslogs.RetentionDays_SEVEN_YEARS, 2922: awslogs.RetentionDays_EIGHT_YEARS,
		3288: awslogs.RetentionDays_NINE_YEARS, 3653: awslogs.RetentionDays_TEN_YEARS,
	}
	word, ok := words[days]
	if !ok {
		panic(fmt.Sprintf("log retention of %d days is allowed by pkg/settings and unknown here", days))
	}
	return word
}
