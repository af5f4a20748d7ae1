package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awscloudwatch"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/model/metrics"
)

// addDashboard shows the fleet, the way of pods to nodes, what is disrupted and interrupted, and the functions
// themselves.
func (m monitoring) addDashboard(functions []function) {
	if !m.props.Stack.Dashboard {
		return
	}
	var errors, durations []awscloudwatch.IMetric
	for _, f := range functions {
		errors = append(errors, m.made[f.name].fn.MetricErrors(labelled(sum(5), f.name)))
		durations = append(durations, m.made[f.name].fn.MetricDuration(labelled(most(5), f.name)))
	}
	byPool, byReason := "capacity_type,cluster,nodepool", "cluster,reason"
	d := awscloudwatch.NewDashboard(m.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(m.names.Dashboard()), DefaultInterval: awscdk.Duration_Hours(jsii.Number(24)),
	})
	d.AddWidgets(
		m.graph("Price of the nodes, USD per hour", true, m.search(byPool, metrics.PoolCost, "Maximum")),
		m.graph("Nodes", true, m.search(byPool, metrics.PoolNodes, "Maximum")))
	d.AddWidgets(
		m.graph("From pending to launch, seconds", false, m.decision("p50"), m.decision("p90"), m.decision("Maximum")),
		m.graph("Pods that no pool can hold", false, m.measured(metrics.Unschedulable, labelled(most(5), "pods")),
			m.measured(metrics.Unbound, labelled(most(5), "seconds of the oldest"))))
	d.AddWidgets(
		m.graph("Disruptions by reason", true, m.search(byReason, metrics.ClaimsDisrupt, "Sum")),
		m.graph("NodeClaims", false, m.measured(metrics.ClaimsCreated, labelled(sum(5), "created")),
			m.measured(metrics.ClaimsEnded, labelled(sum(5), "ended"))))
	d.AddWidgets(
		m.graph("Notices by reason", true, m.search(byReason, metrics.Notices, "Sum")),
		m.graph("From notice to handled, seconds", false,
			m.measured(metrics.NoticeHandled, labelled(most(5), "slowest"))))
	if m.push {
		d.AddWidgets(m.graph("What push missed", false,
			m.measured(metrics.PushMissed, labelled(sum(5), "pods and deletions"))))
	}
	d.AddWidgets(m.graph("Errors of the functions", true, errors...),
		m.graph("Duration of the functions, ms", false, durations...))
}

func (m monitoring) decision(statisticName string) awscloudwatch.IMetric {
	return m.measured(metrics.DecisionTime, labelled(statistic(statisticName, 5), statisticName))
}

// search finds the metrics of all pools or reasons, which nobody knows beforehand.
func (m monitoring) search(dimensions, name, statisticName string) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{%s,%s} MetricName="%s" cluster="%s"', '%s', 300)`,
			metrics.Namespace, dimensions, name, m.cluster, statisticName)),
		Label: jsii.String(""), UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Period: awscdk.Duration_Minutes(jsii.Number(5)),
	})
}

func (m monitoring) graph(title string, stacked bool, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Left: &metrics,
		Stacked: &stacked, Width: jsii.Number(12),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0), ShowUnits: jsii.Bool(false)}})
}

func labelled(o *awscloudwatch.MetricOptions, label string) *awscloudwatch.MetricOptions {
	o.Label = &label
	return o
}
