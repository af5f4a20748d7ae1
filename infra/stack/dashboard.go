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
		errors = append(errors, m.made[f.name].fn.MetricErrors(withLabel(sumOver(5), f.name)))
		durations = append(durations, m.made[f.name].fn.MetricDuration(withLabel(maximumOver(5), f.name)))
	}
	byPool, byReason := "capacity_type,cluster,nodepool", "cluster,reason"
	d := awscloudwatch.NewDashboard(m.Stack, jsii.String("Dashboard"), &awscloudwatch.DashboardProps{
		DashboardName: jsii.String(m.names.Dashboard()), DefaultInterval: awscdk.Duration_Hours(jsii.Number(24)),
	})
	d.AddWidgets(
		m.graphWidget("Price of the nodes, USD per hour", true, m.searchMetrics(byPool, metrics.PoolCost, "Maximum")),
		m.graphWidget("Nodes", true, m.searchMetrics(byPool, metrics.PoolNodes, "Maximum")))
	d.AddWidgets(
		m.graphWidget("From pending to launch, seconds", false,
			m.decisionMetric("p50"), m.decisionMetric("p90"), m.decisionMetric("Maximum")),
		m.graphWidget("Pods that no pool can hold", false,
			m.ownMetric(metrics.Unschedulable, withLabel(maximumOver(5), "pods")),
			m.ownMetric(metrics.Unbound, withLabel(maximumOver(5), "seconds of the oldest")),
			m.ownMetric(metrics.Asleep, withLabel(maximumOver(5), "pods that wait for a NodePool to wake"))))
	d.AddWidgets(
		m.graphWidget("Disruptions by reason", true, m.searchMetrics(byReason, metrics.ClaimsDisrupt, "Sum"),
			m.ownMetric(metrics.QueueFailures, withLabel(sumOver(5), "taken back"))),
		m.graphWidget("NodeClaims", false, m.ownMetric(metrics.ClaimsCreated, withLabel(sumOver(5), "created")),
			m.ownMetric(metrics.ClaimsEnded, withLabel(sumOver(5), "ended"))))
	d.AddWidgets(
		m.graphWidget("Notices by reason", true, m.searchMetrics(byReason, metrics.Notices, "Sum")),
		m.graphWidget("From notice to handled, seconds", false,
			m.ownMetric(metrics.NoticeHandled, withLabel(maximumOver(5), "slowest"))))
	if m.push {
		d.AddWidgets(m.graphWidget("What push missed", false,
			m.ownMetric(metrics.PushMissed, withLabel(sumOver(5), "pods and deletions"))))
	}
	d.AddWidgets(m.graphWidget("Errors of the functions", true, errors...),
		m.graphWidget("Duration of the functions, ms", false, durations...))
}

func (m monitoring) decisionMetric(statisticName string) awscloudwatch.IMetric {
	return m.ownMetric(metrics.DecisionTime, withLabel(metricStatistic(statisticName, 5), statisticName))
}

// searchMetrics finds the metrics of all pools or reasons, which nobody knows beforehand.
func (m monitoring) searchMetrics(dimensions, name, statisticName string) awscloudwatch.IMetric {
	return awscloudwatch.NewMathExpression(&awscloudwatch.MathExpressionProps{
		Expression: jsii.String(fmt.Sprintf(`SEARCH('{%s,%s} MetricName="%s" cluster="%s"', '%s', 300)`,
			metrics.Namespace, dimensions, name, m.cluster, statisticName)),
		Label: jsii.String(""), UsingMetrics: &map[string]awscloudwatch.IMetric{},
		Period: awscdk.Duration_Minutes(jsii.Number(5)),
	})
}

func (m monitoring) graphWidget(title string, stacked bool, metrics ...awscloudwatch.IMetric) awscloudwatch.IWidget {
	return awscloudwatch.NewGraphWidget(&awscloudwatch.GraphWidgetProps{Title: &title, Left: &metrics,
		Stacked: &stacked, Width: jsii.Number(12),
		LeftYAxis: &awscloudwatch.YAxisProps{Min: jsii.Number(0), ShowUnits: jsii.Bool(false)}})
}

func withLabel(o *awscloudwatch.MetricOptions, label string) *awscloudwatch.MetricOptions {
	o.Label = &label
	return o
}
