package stack

import (
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/settings"
)

// alarm is one condition that a person must hear of. It rings when the metric is over (or under) the limit in so many
// of so many periods; a metric without data is fine unless silence says otherwise.
type alarm struct {
	id, text string
	metric   awscloudwatch.IMetric
	over     float64
	under    bool // it rings under the limit instead
	silence  bool // no data rings too
	of, from float64
	row      string             // of the table of troubles in functions/README.md
	after    awscdk.CfnResource // without which there is no data yet; nil: nothing
}

// monitoring makes the alarms, the dashboard and the stored queries.
type monitoring struct {
	scope
	key  awskms.IKey // nil: keys of AWS
	push bool
	made map[string]madeFunction // by name
}

// addAlarms makes the topic and every alarm onto it.
func (m monitoring) addAlarms(functions []function) {
	topic := m.addTopic()
	for _, f := range functions {
		for _, a := range append(m.functionAlarms(m.made[f.name]), lossAlarms(m.scope, m.made[f.name])...) {
			m.addAlarm(topic, a)
		}
	}
	for _, a := range m.clusterAlarms() {
		m.addAlarm(topic, a)
	}
}

// essentialAlarms are the alarms that tell that pods get no nodes or that notices are lost.
func essentialAlarms() []string {
	return []string{"ProvisionErrors", "LifecycleErrors", "ProvisionSilent", "PodsUnplaced", "CatalogOld", "NoticesLate",
		"SpotInterruptionDeadLetters", "OtherLeader"}
}

// wantsAlarm tells whether the settings ask for an alarm. A limit that the user gave is a wish of its own.
func (p Props) wantsAlarm(id string) bool {
	switch p.Stack.Alarms {
	case settings.AlarmsNone:
		return false
	case settings.AlarmsEssential:
		return slices.Contains(append(essentialAlarms(), "Price", "CeilingReached"), id)
	}
	return true
}

// addTopic makes the topic. Its messages are the alarms' own texts. It is not encrypted with the key that AWS manages,
// because CloudWatch may not use that one.
func (m monitoring) addTopic() awssns.Topic {
	topic := awssns.NewTopic(m.Stack, jsii.String("Alarms"), &awssns.TopicProps{
		DisplayName: jsii.String(m.names.Title()), EnforceSSL: jsii.Bool(true), MasterKey: m.key,
	})
	// The policy that enforces TLS takes the place of the one that SNS gives otherwise, under which CloudWatch may
	// publish.
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("AlarmsOfTheAccount"), Actions: jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": *m.Account()}},
	}))
	if mail := m.props.Stack.AlarmEmail; mail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(&mail, nil))
	}
	m.addOutput("AlarmTopic", *topic.TopicArn(), "Where alarms are published; subscribe to it")
	return topic
}

func (m monitoring) addAlarm(topic awssns.Topic, a alarm) {
	if !m.props.wantsAlarm(a.id) {
		return
	}
	compare, missing := awscloudwatch.ComparisonOperator_GREATER_THAN_THRESHOLD,
		awscloudwatch.TreatMissingData_NOT_BREACHING
	if a.under {
		compare = awscloudwatch.ComparisonOperator_LESS_THAN_THRESHOLD
	}
	if a.silence {
		missing = awscloudwatch.TreatMissingData_BREACHING
	}
	text := a.text + `. functions/README.md, "When something does not work": alarm ` + a.row
	made := awscloudwatch.NewAlarm(m.Stack, jsii.String(a.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(m.names.Alarm(a.id)), AlarmDescription: &text, Metric: a.metric,
		Threshold:          &a.over,
		ComparisonOperator: compare, TreatMissingData: missing, DatapointsToAlarm: &a.of, EvaluationPeriods: &a.from,
	})
	made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
	if a.after != nil {
		resourceOf(made).AddResourceDependency(a.after, nil)
	}
}

// functionAlarms watch one function. A function that never runs twice at a time is throttled whenever a tick meets a
// busy one, which is as it should be. A time-out is an error. What a function could not do about an event is tried
// again and then in its dead-letter queue, so that its errors need no alarm; nor does what CloudFormation waits for.
func (m monitoring) functionAlarms(f madeFunction) []alarm {
	name := m.functionName(f.name)
	var all []alarm
	if f.ticks() {
		all = append(all, tickAlarms(m.scope, f)...)
	}
	if f.called {
		all = append(all, alarm{id: f.id + "Errors", over: 2, of: 1, from: 1, metric: f.fn.MetricErrors(sumOver(5)),
			text: name + " failed more than twice in 5 minutes: " + readLog, row: "Errors"})
	}
	if f.urgent > 0 {
		all = append(all, alarm{id: f.id + "Throttles", over: 0, of: 1, from: 1,
			metric: f.fn.MetricThrottles(sumOver(5)),
			text: name + " was throttled: more notices came at once than its setting of concurrency lets through, and notices wait; " +
				"raise interruptionConcurrency",
			row: "Throttles"})
	}
	if f.deadLetters != nil && !f.direct {
		reasons := "each has the reason"
		if f.queue != nil { // SQS moves them there as they were
			reasons = "its log has the reasons"
		}
		all = append(all, alarm{id: f.id + "DeadLetters", over: 0, of: 1, from: 1,
			metric: f.deadLetters.MetricApproximateNumberOfMessagesVisible(maximumOver(5)),
			text:   name + " gave events up: read them in its dead-letter queue, " + reasons + ", then purge it", row: "DeadLetters"})
	}
	return all
}

const readLog = "read its log group; a time-out is an error too, and more functionMemory makes a pass faster"

// tickAlarms watch a function that a schedule invokes: one that fails, and one that nobody runs. It fails too often
// when three ticks in a row fail. A period without an invocation is no data to CloudWatch, which then looks further
// back; so what is missing is filled with 0.
func tickAlarms(s scope, f madeFunction) []alarm {
	const ticks = 3
	name := s.functionName(f.name)
	minutes := max(5, ticks*f.everyMin)
	over := min(2, minutes/f.everyMin-2)
	return []alarm{
		{id: f.id + "Errors", over: over, of: 1, from: 1, metric: f.fn.MetricErrors(sumOver(minutes)), row: "Errors",
			text: fmt.Sprintf("%s failed more than %v times in %v minutes: %s", name, over, minutes, readLog)},
		{id: f.id + "Silent", under: true, silence: true, over: 1, of: ticks, from: ticks, row: "Silent", after: f.schedule,
			metric: filledMetric(f.everyMin, f.fn.MetricInvocations(sumOver(f.everyMin))),
			text: fmt.Sprintf("%s has missed %d of its ticks: enable its schedule in the group %s, and see that its concurrency is not 0; a deployment changes neither",
				name, ticks, s.names.ScheduleGroup())},
	}
}

// filledMetric is a metric with 0 where there is no data.
func filledMetric(minutes float64, metric awscloudwatch.IMetric) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{Expression: jsii.String("FILL(m0, 0)"),
		UsingMetrics: &map[string]awscloudwatch.IMetric{"m0": metric}, Period: awscdk.Duration_Minutes(&minutes)})
}

// lossAlarms are about what neither a function nor its dead-letter queue has: events that Lambda dropped or that
// EventBridge could not hand over. An alarm about the sum of such metrics would cost as much, and say less.
func lossAlarms(s scope, f madeFunction) (all []alarm) {
	name := s.functionName(f.name)
	if f.deadLetters == nil || f.direct {
		return all
	}
	failed := "EventBridge could not invoke " + name + " with an event: see that its alias live exists and that the rule may invoke it, and make again what is gone"
	if f.queue != nil { // Lambda takes from it, and has nothing to drop
		failed = "EventBridge could not send an event to the queue of " + name + ": see that the queue exists and that the rule may send to it, and make again what is gone"
	} else {
		all = append(all, alarm{id: f.id + "EventsDropped", over: 0, of: 1, from: 1, row: "EventsDropped",
			metric: f.fn.Metric(jsii.String("AsyncEventsDropped"), sumOver(5)),
			text:   "Lambda dropped events that " + name + " did not handle: read its dead-letter queue, and see that it may write there"})
	}
	for _, rule := range f.eventRules {
		all = append(all, alarm{id: f.id + "RuleFailed", over: 0, of: 1, from: 1, row: "RuleFailed",
			metric: awscloudwatch.NewMetric(&awscloudwatch.MetricProps{Namespace: jsii.String("AWS/Events"),
				MetricName: jsii.String("FailedInvocations"), DimensionsMap: &map[string]*string{"RuleName": rule.RuleName()},
				Statistic: jsii.String("Sum"), Period: awscdk.Duration_Minutes(jsii.Number(5))}),
			text: failed})
	}
	return all
}

// staleCatalog is the age of prices and instance types from which on an alarm rings: many refreshes, and less than
// the 24 hours from which the functions warn.
const staleCatalog = 6 * time.Hour

// unschedulableAfter is the age of a pod that no NodePool can hold from which on an alarm rings.
const unschedulableAfter = 15 * time.Minute

// clusterAlarms watch what the functions measure.
func (m monitoring) clusterAlarms() []alarm {
	set := m.props.Stack
	all := []alarm{
		{id: "PodsUnplaced", row: "PodsUnplaced", over: unschedulableAfter.Seconds(), of: 2, from: 2,
			metric: m.ownMetric(metrics.Unbound, maximumOver(5)),
			text: "a pod has no node for longer than " + unschedulableAfter.String() +
				" because no NodePool can hold it: its events say why; joiner plan says what would help"},
		{id: "CatalogOld", row: "CatalogOld", after: m.made["refresh"].schedule, silence: true, over: staleCatalog.Seconds(), of: 3, from: 3,
			metric: m.ownMetric(metrics.CatalogAge, maximumOver(10)),
			text: "prices and instance types are older than " + staleCatalog.String() +
				", or nobody measures it: read the log of refresh"},
		{id: "OtherLeader", row: "OtherLeader", over: 0, of: 1, from: 1,
			metric: m.ownMetric(metrics.RefusedByLease, sumOver(5)),
			text:   "Joiner changes nothing because a Karpenter leads the cluster: stop one of them, or set mode to observe"},
		// one that meets a burst or a slow API server goes on in the next; a cluster that has outgrown them does so
		// again
		{id: "PassesCutShort", row: "PassesCutShort", over: 2, of: 2, from: 2,
			metric: m.ownMetric(metrics.PassesCutShort, sumOver(5)),
			text:   "passes end before they are done, again and again: this cluster has outgrown functionMemory; raise it, joiner doctor says to what"},
		{id: "TypesLeftOut", row: "TypesLeftOut", over: 0, of: 1, from: 1,
			metric: m.ownMetric(metrics.TypesLeftOut, maximumOver(5)),
			text:   "kube-scheduler refuses nodes of an instance type for the pods that they were bought for, so that no more are bought for an hour: events on the pods have its words"},
		// what fails is left out for ten minutes, and fails again then
		{id: "Faults", row: "Faults", over: 0, of: 1, from: 1, metric: m.ownMetric(metrics.Faults, sumOver(15)),
			text: "Joiner itself failed about a pod, a NodePool or a node and goes on without it: the log says about which, and where the pass is kept for joiner replay"},
	}
	if set.InterruptionHandling {
		all = append(all, alarm{id: "NoticesLate", row: "NoticesLate", over: lateNotice, of: 1, from: 1,
			metric: m.ownMetric(metrics.NoticeHandled, maximumOver(5)),
			text:   "a notice that EC2 takes an instance back was handled more than a minute after it was given: look for throttles of spotinterruption and for a slow API server"})
	}
	if m.push {
		all = append(all, alarm{id: "PushMissed", row: "PushMissed", over: 0, of: 3, from: 6,
			metric: m.ownMetric(metrics.PushMissed, sumOver(5)),
			text:   "pods or deletions wait for the schedule although push is on: the cluster cannot reach the URL of wake, or its webhook is gone"})
	}
	if f := m.props.Functions; f.MaxNodes > 0 || f.MaxNodesPerMinute > 0 || f.MaxUSDPerHour > 0 {
		all = append(all, alarm{id: "CeilingReached", row: "CeilingReached", over: 0, of: 2, from: 2,
			metric: m.ownMetric(metrics.CeilingHeld, maximumOver(5)),
			text:   "nodes are not launched because the cluster has reached maxNodes, maxNodesPerMinute or maxUSDPerHour: events on NodePools and pods say which; raise it, or find out who asks for so much"})
	}
	if set.PriceAlarmUSD > 0 {
		all = append(all, alarm{id: "Price", row: "Price", over: set.PriceAlarmUSD, of: 2, from: 2,
			metric: m.ownMetric(metrics.PricePerHour, maximumOver(5)),
			text:   "the nodes cost more per hour than priceAlarmUSD: joiner status says which pools; limits of NodePools bound them"})
	}
	return all
}

// lateNotice is half of the two minutes that EC2 gives, in seconds.
const lateNotice = 60

// ownMetric is a metric of the functions' own that has no dimension but the cluster.
func (m monitoring) ownMetric(name string, o *awscloudwatch.MetricOptions) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{Namespace: jsii.String(metrics.Namespace),
		MetricName:    &name,
		DimensionsMap: &map[string]*string{"cluster": &m.cluster}, Statistic: o.Statistic, Period: o.Period,
		Label: o.Label})
}

func sumOver(minutes float64) *awscloudwatch.MetricOptions { return metricStatistic("Sum", minutes) }

func maximumOver(minutes float64) *awscloudwatch.MetricOptions {
	return metricStatistic("Maximum", minutes)
}

func metricStatistic(name string, minutes float64) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &name, Period: awscdk.Duration_Minutes(&minutes)}
}
