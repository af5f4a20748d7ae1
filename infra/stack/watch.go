package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatchactions"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssns"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssnssubscriptions"
	"github.com/aws/jsii-runtime-go"

	"joiner/pkg/model/metrics"
	"joiner/pkg/settings"
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
}

// addAlarms makes the topic and every alarm onto it.
func (s *joiner) addAlarms(functions []function) {
	topic := s.addTopic()
	for _, f := range functions {
		for _, a := range s.functionAlarms(s.made[f.name]) {
			s.addAlarm(topic, a)
		}
	}
	for _, a := range s.clusterAlarms() {
		s.addAlarm(topic, a)
	}
}

// essential are the alarms that tell that pods get no nodes or that notices are lost.
func essential() []string {
	return []string{"ProvisionErrors", "LifecycleErrors", "ProvisionSilent", "PodsUnplaced", "CatalogOld", "NoticesLate",
		"SpotInterruptionDeadLetters", "OtherLeader"}
}

// wantsAlarm tells whether the settings ask for an alarm. A limit that the user gave is a wish of its own.
func (p Props) wantsAlarm(id string) bool {
	switch p.Stack.Alarms {
	case settings.AlarmsNone:
		return false
	case settings.AlarmsEssential:
		return slices.Contains(essential(), id) || id == "Price" || id == "Nodes"
	}
	return true
}

// addTopic makes the topic. Its messages are the alarms' own texts. It is not encrypted with the key that AWS manages,
// because CloudWatch may not use that one.
func (s *joiner) addTopic() awssns.Topic {
	topic := awssns.NewTopic(s.Stack, jsii.String("Alarms"), &awssns.TopicProps{
		DisplayName: jsii.String(s.names.Title()), EnforceSSL: jsii.Bool(true), MasterKey: s.key,
	})
	// The policy that enforces TLS takes the place of the one that SNS gives otherwise, under which CloudWatch may
	// publish.
	topic.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("AlarmsOfTheAccount"), Actions: jsii.Strings("sns:Publish"),
		Resources:  &[]*string{topic.TopicArn()},
		Principals: &[]awsiam.IPrincipal{awsiam.NewServicePrincipal(jsii.String("cloudwatch.amazonaws.com"), nil)},
		Conditions: &map[string]any{"StringEquals": map[string]any{"aws:SourceAccount": *s.Account()}},
	}))
	if mail := s.props.Stack.AlarmEmail; mail != "" {
		topic.AddSubscription(awssnssubscriptions.NewEmailSubscription(&mail, nil))
	}
	s.output("AlarmTopic", *topic.TopicArn(), "Where alarms are published; subscribe to it")
	return topic
}

func (s *joiner) addAlarm(topic awssns.Topic, a alarm) {
	if !s.props.wantsAlarm(a.id) {
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
	made := awscloudwatch.NewAlarm(s.Stack, jsii.String(a.id+"Alarm"), &awscloudwatch.AlarmProps{
		AlarmName: jsii.String(s.names.Alarm(a.id)), AlarmDescription: &a.text, Metric: a.metric,
		Threshold:          &a.over,
		ComparisonOperator: compare, TreatMissingData: missing, DatapointsToAlarm: &a.of, EvaluationPeriods: &a.from,
	})
	made.AddAlarmAction(awscloudwatchactions.NewSnsAction(topic))
}

// functionAlarms watch one function. A function that never runs twice at a time is throttled whenever a tick meets a
// busy one, which is as it should be; provision and lifecycle may use nearly all their time, since they stay while
// there is work.
func (s *joiner) functionAlarms(f madeFunction) []alarm {
	const nearly = 0.95 // of the time-out
	name := s.functionName(f.name)
	all := []alarm{{id: f.id + "Errors", over: 2, of: 1, from: 1, metric: f.fn.MetricErrors(sum(5)),
		text: name + " failed more than twice in 5 minutes: look into its log group"}}
	if f.direct { // called by CloudFormation only, which tells of errors itself
		all = nil
	} else {
		all = append(all, alarm{id: f.id + "Duration", over: nearly * f.timeoutSec * 1000, of: 2, from: 3,
			metric: f.fn.MetricDuration(most(5)),
			text:   name + " runs into its time-out: too much work, or somebody it calls does not answer"})
	}
	if !f.alone && !f.direct {
		why := "the account's concurrency is used up"
		if s.props.reserved(f.function) > 0 {
			why = "more notices came at once than its setting of concurrency lets through"
		}
		all = append(all, alarm{id: f.id + "Throttles", over: 0, of: 1, from: 1, metric: f.fn.MetricThrottles(sum(5)),
			text: name + " was throttled: " + why + ", and notices wait"})
	}
	if f.deadLetters != nil {
		all = append(all, alarm{id: f.id + "DeadLetters", over: 0, of: 1, from: 1,
			metric: f.deadLetters.MetricApproximateNumberOfMessagesVisible(most(5)),
			text:   name + " gave events up: they are in its dead-letter queue, each with the reason"})
	}
	return all
}

// clusterAlarms watch what the functions measure.
func (s *joiner) clusterAlarms() []alarm {
	set := s.props.Stack
	all := []alarm{
		{id: "ProvisionSilent", under: true, silence: true, over: 1, of: 1, from: 1,
			metric: s.made["provision"].fn.MetricInvocations(sum(10)),
			text:   "provision has not run for 10 minutes: its schedule is disabled, or its concurrency is 0; new pods get no nodes"},
		{id: "PodsUnplaced", over: set.UnschedulablePodsAlarm.Seconds(), of: 2, from: 2,
			metric: s.measured(metrics.Unbound, most(5)),
			text: "a pod has no node for longer than " + set.UnschedulablePodsAlarm.String() +
				" because no NodePool can hold it: its events say why"},
		{id: "CatalogOld", silence: true, over: set.StaleCatalogAlarm.Seconds(), of: 3, from: 3,
			metric: s.measured(metrics.CatalogAge, most(10)),
			text: "prices and instance types are older than " + set.StaleCatalogAlarm.String() +
				", or refresh does not run"},
		{id: "NoticesLate", over: lateNotice, of: 1, from: 1, metric: s.measured(metrics.NoticeHandled, most(5)),
			text: "a notice that EC2 takes an instance back was handled more than a minute after it was given"},
		{id: "OtherLeader", over: 0, of: 1, from: 1, metric: s.measured(metrics.RefusedByLease, sum(5)),
			text: "Joiner changes nothing because a Karpenter leads the cluster: stop one of them, or set mode to observe"},
		// what fails is left out for ten minutes, and fails again then
		{id: "Faults", over: 0, of: 1, from: 1, metric: s.measured(metrics.Faults, sum(15)),
			text: "Joiner itself failed about a pod, a NodePool or a node and goes on without it: the log says about which, and where the pass is kept for joiner replay"},
	}
	if s.secret != nil {
		all = append(all, alarm{id: "PushMissed", over: 0, of: 3, from: 6,
			metric: s.measured(metrics.PushMissed, sum(5)),
			text:   "pods or deletions wait for the schedule although push is on: the cluster cannot reach the URL of wake, or its webhook is gone"})
	}
	if set.PriceAlarmUSD > 0 {
		all = append(all, alarm{id: "Price", over: set.PriceAlarmUSD, of: 2, from: 2,
			metric: s.measured(metrics.PricePerHour, most(5)),
			text:   "the nodes cost more per hour than priceAlarmUSD"})
	}
	if set.NodesAlarm > 0 {
		all = append(all, alarm{id: "Nodes", over: float64(set.NodesAlarm), of: 2, from: 2,
			metric: s.measured(metrics.NodeCount, most(5)),
			text:   "there are more nodes than nodesAlarm"})
	}
	return all
}

// lateNotice is half of the two minutes that EC2 gives, in seconds.
const lateNotice = 60

// measured is a metric of the functions' own that has no dimension but the cluster.
func (s *joiner) measured(name string, o *awscloudwatch.MetricOptions) awscloudwatch.Metric {
	return awscloudwatch.NewMetric(&awscloudwatch.MetricProps{Namespace: jsii.String(metrics.Namespace),
		MetricName:    &name,
		DimensionsMap: &map[string]*string{"cluster": &s.cluster}, Statistic: o.Statistic, Period: o.Period,
		Label: o.Label})
}

func sum(minutes float64) *awscloudwatch.MetricOptions { return statistic("Sum", minutes) }

func most(minutes float64) *awscloudwatch.MetricOptions { return statistic("Maximum", minutes) }

func statistic(name string, minutes float64) *awscloudwatch.MetricOptions {
	return &awscloudwatch.MetricOptions{Statistic: &name, Period: awscdk.Duration_Minutes(&minutes)}
}
