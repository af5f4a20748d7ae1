package stack

import (
	"slices"

	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/jsii-runtime-go"

	"joiner/pkg/decisionlog"
)

// query is a question to the decision log, ready to be asked in CloudWatch Logs Insights.
type query struct {
	id, name, text string
	functions      []string
}

// queries are the questions that people ask. Most read the records that pass through the log as "pass", of whose lists
// Logs Insights shows one entry at a time: the first.
func queries() []query {
	both := []string{decisionlog.Provision, decisionlog.Disrupt}
	return []query{
		{"Decisions", "decisions", `fields @timestamp, pass.function, pass.fleet.nodes, pass.fleet.hourlyUSD, pass.hourlyUSD, pass.gap
| filter msg = "pass"
| sort @timestamp desc
| limit 200`, both},
		{"Unplaced", "pods without a node", `fields @timestamp, pass.unplaced.0.count as pods, pass.unplaced.0.names.0 as pod, pass.unplaced.0.why as why
| filter msg = "pass" and ispresent(pass.unplaced.0.why)
| sort @timestamp desc
| limit 200`, []string{decisionlog.Provision}},
		{"Launches", "launches by type", `filter msg = "launched"
| stats count() as nodes by type, capacityType, zone
| sort nodes desc`, []string{decisionlog.Provision}},
		{"Removals", "disruptions", `fields @timestamp, pass.removals.0.stage as stage, pass.removals.0.reason as reason, pass.removals.0.claims.0 as claim, pass.removals.0.savesUSD as savesUSD, pass.removals.0.why as why
| filter msg = "pass" and ispresent(pass.removals.0.stage)
| sort @timestamp desc
| limit 200`, []string{decisionlog.Disrupt}},
		{"Price", "price of the fleet", `filter msg = "pass"
| stats avg(pass.fleet.hourlyUSD) as usdPerHour, max(pass.fleet.nodes) as nodes, avg(pass.gap) as gap by bin(15m)`, both},
		{"Errors", "errors and warnings", `fields @timestamp, @log, level, msg, error
| filter level in ["ERROR", "WARN"]
| sort @timestamp desc
| limit 200`, nil},
	}
}

// addQueries makes the questions to the decision log.
func (s *joiner) addQueries() {
	for _, q := range queries() {
		var groups []any
		for _, f := range s.props.functions() {
			if q.functions == nil || slices.Contains(q.functions, f.name) {
				groups = append(groups, "/aws/lambda/"+s.functionName(f.name))
			}
		}
		awslogs.NewCfnQueryDefinition(s.Stack, jsii.String(q.id+"Query"), &awslogs.CfnQueryDefinitionProps{
			Name: jsii.String("joiner/" + s.cluster + "/" + q.name), QueryString: jsii.String(q.text),
			LogGroupNames: &groups,
		})
	}
}
