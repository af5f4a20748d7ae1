package stack_test

import (
	"encoding/json"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// unwatched are the metrics that neither the dashboard shows nor an alarm watches, and why.
var unwatched = map[string]string{
	"karpenter_voluntary_disruption_decisions_total":                      "the NodeClaims that went are shown, by the same reasons",
	"karpenter_voluntary_disruption_eligible_nodes":                       "joiner status says it of each node",
	"karpenter_voluntary_disruption_failed_validations_total":             "pods that come while disruption waits are no fault",
	"karpenter_voluntary_disruption_decision_evaluation_duration_seconds": "the duration of the function is shown",
	"joiner_disruption_ineligible_nodes":                                  "joiner status says it of each node",
	"karpenter_cluster_state_node_count":                                  "nodes are shown by NodePool",
	"joiner_api_requests_total":                                           "alarms ring when passes are cut short",
	"joiner_api_read_bytes_total":                                         "alarms ring when passes are cut short",
}

// optional are the metrics that are watched where their settings are on.
var optional = map[string]bool{"joiner_launches_held_count": true, "joiner_price_usd_per_hour": true,
	"joiner_push_missed_total": true}

// A metric that Joiner writes to CloudWatch is on the dashboard or in an alarm, or has a line above: one that nobody
// sees is paid for in vain.
func TestMetricsAreWatched(t *testing.T) {
	context := map[string]any{"clusterName": "demo", "distFolder": placeholders(t)}
	always := watchedMetrics(t, context)
	maps.Copy(context, map[string]any{"trigger": "push", "priceAlarmUSD": 12.5, "maxNodes": 500})
	sometimes := watchedMetrics(t, context)
	all := metricNames(t)
	for name := range all {
		shown, why := always[name], unwatched[name]
		if optional[name] {
			shown = sometimes[name] && !always[name]
		}
		switch {
		case shown && why != "":
			t.Errorf("%s is watched, although %s", name, why)
		case !shown && why == "":
			t.Errorf("nobody watches %s: it is on no dashboard and in no alarm, and nobody said why", name)
		}
	}
	for name := range unwatched {
		if !all[name] {
			t.Errorf("there is no metric %s", name)
		}
	}
}

// watchedMetrics are the metrics of Joiner's own that the dashboard and alarms of a stack name.
func watchedMetrics(t *testing.T, context map[string]any) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	template := words(t, mustSynth(t, context))
	for _, kind := range []string{"AWS::CloudWatch::Dashboard", "AWS::CloudWatch::Alarm"} {
		template.each(kind, func(_ string, p map[string]any) {
			properties, err := json.Marshal(p)
			if err != nil {
				t.Fatal(err)
			}
			ours := regexp.MustCompile(`\b(karpenter|joiner)_[a-z_]+`)
			for _, name := range ours.FindAllString(string(properties), -1) {
				seen[name] = true
			}
		})
	}
	return seen
}

// metricNames are the names of all metrics for CloudWatch, as their package declares them.
func metricNames(t *testing.T) map[string]bool {
	t.Helper()
	f, err := parser.ParseFile(token.NewFileSet(), "../../pkg/model/metrics/metric.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
			name, err := strconv.Unquote(lit.Value)
			if err == nil && (strings.HasPrefix(name, "karpenter_") || strings.HasPrefix(name, "joiner_")) {
				out[name] = true
			}
		}
		return true
	})
	if len(out) < 20 {
		t.Fatalf("only %d metrics were found", len(out))
	}
	return out
}
