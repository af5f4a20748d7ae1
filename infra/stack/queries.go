package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/decisionlog"
)

// query is a question to the decision log, ready to be asked in CloudWatch Logs Insights.
type query struct {
	id, name, text string
	functions      []string
}

// logQueries are the questions that people ask. Most read the records that pass through the log as "decision", of whose
// lists Logs Insights shows one entry at a time: the first.
func logQueries() []query {
	both := []string{decisionlog.Provision, decisionlog.Disrupt}
	return []query{
		{"Decisions", "decisions", `fields @timestamp, decision.function, decision.fleet.nodes, decision.fleet.hourlyUSD, decision.hourlyUSD, decision.gap
| filter msg = "decision"
| sort @timestamp desc
| limit 200`, both},
		{"Unplaced", "pods without a node", `fields @timestamp, decision.unplaced.0.count as pods, decision.unplaced.0.names.0 as pod, decision.unplaced.0.why as why
| filter msg = "decision" and ispresent(decision.unplaced.0.why)
| sort @timestamp desc
| limit 200`, []string{decisionlog.Provision}},
		{"Launches", "launches by type", `filter msg = "launched"
| stats count() as nodes by type, capacityType, zone
| sort nodes desc`, []string{decisionlog.Provision}},
		{"Removals", "disruptions", `fields @timestamp, decision.removals.0.stage as stage, decision.removals.0.reason as reason, decision.removals.0.claims.0 as claim, decision.removals.0.savesUSD as savesUSD, decision.removals.0.why as why
| filter msg = "decision" and ispresent(decision.removals.0.stage)
| sort @timestamp desc
| limit 200`, []string{decisionlog.Disrupt}},
		{"Price", "price of the fleet", `filter msg = "decision"
| stats avg(decision.fleet.hourlyUSD) as usdPerHour, max(decision.fleet.nodes) as nodes, avg(decision.gap) as gap by bin(15m)`, both},
		{"Errors", "errors and warnings", `fields @timestamp, @log, level, msg, error
| filter level in ["ERROR", "WARN"]
| sort @timestamp desc
| limit 200`, nil},
	}
}

// addQueries makes the questions to the decision log, after the log groups that they ask.
func (m monitoring) addQueries() {
	for _, q := range logQueries() {
		var groups []any
		for _, f := range m.props.functions() {
			if q.functions == nil || slices.Contains(q.functions, f.name) {
				groups = append(groups, *m.made[f.name].logs.LogGroupName())
			}
		}
		awslogs.NewCfnQueryDefinition(m.Stack, jsii.String(q.id+"Query"), &awslogs.CfnQueryDefinitionProps{
			Name: jsii.String("joiner/" + m.cluster + "/" + q.name), QueryString: jsii.String(q.text),
			LogGroupNames: &groups,
		})
	}
}
