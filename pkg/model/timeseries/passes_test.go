package timeseries

import (
	"testing"
	"time"

	"joiner.sh/pkg/model/metrics"
)

// TestPassesAreCounted under Karpenter's names, decision by decision.
func TestPassesAreCounted(t *testing.T) {
	totals := Totals{}
	totals.CountDisruption(Disruption{Pools: []string{"general"}, Eligible: map[string]int{"drifted": 9}, Ineligible: map[string]int{"Budget": 4, "TooYoung": 1}}, noon())
	totals.CountDisruption(Disruption{Took: 300 * time.Millisecond, Pools: []string{"batch", "general"},
		Begun: []Decision{{"empty", false, 3, []string{"general"}}, {"underutilized", true, 1, []string{"general"}}, {"underutilized", true, 2, []string{"batch", "general"}},
			{"drifted", true, 1, []string{"batch"}}},
		RolledBack: []Decision{{"underutilized", true, 2, nil}},
		Withdrawn:  []Decision{{"underutilized", false, 2, nil}, {"underutilized", false, 1, nil}, {"empty", false, 4, nil}},
		Eligible:   map[string]int{"empty": 1, "underutilized": 7}, Ineligible: map[string]int{"Budget": 2}}, noon())
	totals.CountScheduling("provisioner", 50*time.Millisecond, noon())
	var got []Series
	for _, s := range totals.List(noon()) {
		if s.Name == s.Family || s.Name == s.Family+"_count" || s.Name == s.Family+"_sum" {
			got = append(got, s)
		}
	}
	all := []string{metrics.Decisions, decisionsByPool, metrics.QueueFailures, metrics.Invalidated, metrics.Evaluation, metrics.Eligible, metrics.IneligibleNodes, schedulingDuration}
	const byPool = `
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="multi",decision="replace",nodepool="batch",reason="underutilized"} 1
voluntary_disruption_decisions_by_nodepool_total{decision="replace",nodepool="batch",reason="drifted"} 1
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="empty",decision="delete",nodepool="general",reason="empty"} 1
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="multi",decision="replace",nodepool="general",reason="underutilized"} 1
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="single",decision="replace",nodepool="general",reason="underutilized"} 1`
	expect(t, `
joiner_disruption_ineligible_nodes{reason="Budget"} 2
scheduler_scheduling_duration_seconds_count{controller="provisioner"} 1
scheduler_scheduling_duration_seconds_sum{controller="provisioner"} 0.05
voluntary_disruption_decision_evaluation_duration_seconds_count{} 2
voluntary_disruption_decision_evaluation_duration_seconds_sum{} 0.3
voluntary_disruption_decisions_total{consolidation_type="empty",decision="delete",reason="empty"} 1
voluntary_disruption_decisions_total{consolidation_type="multi",decision="replace",reason="underutilized"} 1
voluntary_disruption_decisions_total{consolidation_type="single",decision="replace",reason="underutilized"} 1
voluntary_disruption_decisions_total{decision="replace",reason="drifted"} 1
voluntary_disruption_eligible_nodes{reason="empty"} 1
voluntary_disruption_eligible_nodes{reason="underutilized"} 7
voluntary_disruption_failed_validations_total{consolidation_type="empty"} 4
voluntary_disruption_failed_validations_total{consolidation_type="multi"} 2
voluntary_disruption_failed_validations_total{consolidation_type="single"} 1
voluntary_disruption_queue_failures_total{consolidation_type="multi",decision="replace",reason="underutilized"} 1`+byPool, text(got, all...))

	totals.CountDisruption(Disruption{Pools: []string{"general"}}, noon())
	expect(t, "", text(totals.WithoutGauges().List(noon()), metrics.Eligible, metrics.IneligibleNodes))
	got = totals.List(noon())
	expect(t, `
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="empty",decision="delete",nodepool="general",reason="empty"} 1
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="multi",decision="replace",nodepool="general",reason="underutilized"} 1
voluntary_disruption_decisions_by_nodepool_total{consolidation_type="single",decision="replace",nodepool="general",reason="underutilized"} 1`, text(got, decisionsByPool))
}
