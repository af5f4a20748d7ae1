package disrupt

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/metrics"
)

// decisionMetrics returns what one pass decided, as metrics. Reasons are Karpenter's, in lower case.
func decisionMetrics(p disruption.Plan, took time.Duration) []metrics.Record {
	type kind struct{ decision, reason string }
	count := map[kind]int{}
	for _, c := range p.Begin {
		decision := "delete"
		if len(c.Launches) > 0 {
			decision = "replace"
		}
		count[kind{decision, lowerReason(c.Reason)}]++
	}
	out := []metrics.Record{{Values: []metrics.Value{metrics.Durations(metrics.Evaluation, took)}}}
	for _, decision := range []string{"delete", "replace"} {
		for _, reason := range []string{"empty", "drifted", "underutilized"} {
			if n := count[kind{decision, reason}]; n > 0 {
				out = append(out, metrics.Record{By: []metrics.Tag{{Key: "decision", Value: decision},
					{Key: "reason", Value: reason}},
					Values: []metrics.Value{metrics.Total(metrics.Decisions, n)}})
			}
		}
	}
	if n := len(p.RollBack); n > 0 {
		out[0].Values = append(out[0].Values, metrics.Total(metrics.QueueFailures, n))
	}
	if n := len(p.Withdrawn); n > 0 {
		out[0].Values = append(out[0].Values, metrics.Total(metrics.Invalidated, n))
	}
	for _, reason := range countedReasons() {
		out = append(out, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: lowerReason(reason)}},
			Values: []metrics.Value{metrics.Gauge(metrics.Eligible, float64(len(p.Eligible[reason])))}})
	}
	words, gone := countIneligible(p), map[string]int{}
	for _, word := range slices.Sorted(maps.Keys(words)) {
		out = append(out, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: word}},
			Values: []metrics.Value{metrics.Gauge(metrics.IneligibleNodes, float64(words[word]))}})
	}
	for _, e := range p.Finish {
		// of a pool that sleeps the command alone says why
		gone[cmp.Or(lowerReason(e.Reason), e.Command)] += len(e.Claims)
	}
	for _, reason := range slices.Sorted(maps.Keys(gone)) {
		out = append(out, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: reason}},
			Values: []metrics.Value{metrics.Total(metrics.ClaimsDisrupt, gone[reason])}})
	}
	return out
}
