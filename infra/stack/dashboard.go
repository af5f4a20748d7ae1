package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"joiner/pkg/model/metrics"
)

// addDashboard shows the fleet, the way of pods to nodes, what is disrupted and interrupted, and the functions
// themselves.
func (s *joiner) addDashboard(functions []function) {
	if !s.props.Stack.Dashboard {
		return
	}
	var errors, durations []awscloudwatch.IMetric
	for _, f := range functions {
		errors = append(errors, s.made[f.name].fn.MetricErrors(labelled(sum(5), f.name)))
		durations = append(durations, s.made[f.name].fn.MetricDuration(labelled(most(5), f.name)))
	}
	byPool, byReason := "capacity_type,cluster,nodepool", "cluster,reason"
	d := awscloudwatch.NewDashboard(s.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(s.names.Dashboard()), DefaultInterval: awscdk.Duration_Hours(jsii.Number(24)),
	})
	d.AddWidgets(
		s.graph("Price of the nodes, USD per hour", true, s.search(byPool, metrics.PoolCost, "Maximum")),
		s.graph("Nodes", true, s.search(byPool, metrics.PoolNodes, "Maximum")))
	d.AddWidgets(
		s.graph("From pending to launch, seconds", false, s.decision("p50"), s.decision("p90"), s.decision("Maximum")),
		s.graph("Pods that no pool can hold", false, s.measured(metrics.Unschedulable, labelled(most(5), "pods")),
			s.measured(metrics.Unbound, labelled(most(5), "seconds of the oldest"))))
	d.AddWidgets(
		s.graph("Disruptions by reason", true, s.search(byReason, metrics.ClaimsDisrupt, "Sum")),
		s.graph("NodeClaims", false, s.measured(metrics.ClaimsCreated, labelled(sum(5), "created")),
			s.measured(metrics.ClaimsEnded, labelled(sum(5), "ended"))))
	d.AddWidgets(
		s.graph("Notices by reason", true, s.search(byReason, metrics.Notices, "Sum")),
		s.graph("From notice to handled, seconds", false,
			s.measured(metrics.NoticeHandled, labelled(most(5), "slowest"))))
	if s.secret != nil {
		d.AddWidgets(s.graph("What push missed", false,
			s.measured(metrics.PushMissed, labelled(sum(5), "pods and deletions"))))
	}
	d.AddWidgets(s.graph("Errors of the functions", true, errors...),
		s.graph("Duration of the functions, ms", false, durations...))
}

func (s *joiner) decision(statisticName string) awscloudwatch.IMetric {
	return s.measured(metrics.DecisionTime, labelled(statistic(statisticName, 5), statisticName))
}

// search finds the metrics of all pools or reasons, which nobody knows beforehand.
func (s *joiner) search(dimensions, name, statisticName string) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{%s,%s} MetricName="%s" cluster="%s"', '%s', 300)`,
			metrics.Namespace, dimensions, name, s.cluster, statisticName)),
		Label: jsii.String(""), UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Period: awscdk.Duration_Minutes(jsii.Number(5)),
	})
}

func (s *joiner) graph(title string, stacked bool, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Left: &metrics,
		Stacked: &stacked, Width: jsii.Number(12),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0), ShowUnits: jsii.Bool(false)}})
}

func labelled(o *awscloudwatch.MetricOptions, label string) *awscloudwatch.MetricOptions {
	o.Label = &label
	return o
}
