package control

import (
	"cmp"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/disrupt"
	"joiner/pkg/metric"
)

// decisions is what one pass decided, as metrics. Reasons are Karpenter's, in lower case.
func decisions(p disrupt.Plan, took time.Duration) []metric.Record {
	type kind struct{ decision, reason string }
	count := map[kind]int{}
	for _, c := range p.Begin {
		decision := "delete"
		if len(c.Launches) > 0 {
			decision = "replace"
		}
		count[kind{decision, strings.ToLower(string(c.Reason))}]++
	}
	out := []metric.Record{{Values: []metric.Value{metric.Durations(metric.Evaluation, took)}}}
	for _, decision := range []string{"delete", "replace"} {
		for _, reason := range []string{"empty", "drifted", "underutilized"} {
			if n := count[kind{decision, reason}]; n > 0 {
				out = append(out, metric.Record{By: []metric.Tag{{Key: "decision", Value: decision}, {Key: "reason", Value: reason}},
					Values: []metric.Value{metric.Total(metric.Decisions, n)}})
			}
		}
	}
	if n := len(p.Undo); n > 0 {
		out[0].Values = append(out[0].Values, metric.Total(metric.QueueFailures, n))
	}
	if n := len(p.Dropped); n > 0 {
		out[0].Values = append(out[0].Values, metric.Total(metric.Invalidated, n))
	}
	for _, reason := range []v1.DisruptionReason{v1.DisruptionDrifted, v1.DisruptionEmpty, v1.DisruptionUnderutilized} {
		out = append(out, metric.Record{By: []metric.Tag{{Key: "reason", Value: strings.ToLower(string(reason))}},
			Values: []metric.Value{metric.Gauge(metric.Eligible, float64(len(p.Eligible[reason])))}})
	}
	words, gone := map[string]int{}, map[string]int{}
	for _, s := range p.Spared {
		words[s.Word]++
	}
	for _, c := range p.Reported {
		words[wordReported] += len(c.Claims)
	}
	for _, word := range sortedKeys(words) {
		out = append(out, metric.Record{By: []metric.Tag{{Key: "reason", Value: word}}, Values: []metric.Value{metric.Gauge(metric.Spared, float64(words[word]))}})
	}
	for _, e := range p.Finish {
		gone[cmp.Or(strings.ToLower(string(e.Reason)), e.Command)] += len(e.Claims) // of a pool that sleeps the command alone says why
	}
	for _, reason := range sortedKeys(gone) {
		out = append(out, metric.Record{By: []metric.Tag{{Key: "reason", Value: reason}}, Values: []metric.Value{metric.Total(metric.ClaimsDisrupt, gone[reason])}})
	}
	return out
}
