package control

import (
	"cmp"
	"context"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
	"joiner/pkg/disrupt"
	"joiner/pkg/metric"
)

// maxSparedEvents is how many nodes one pass tells why they stay; the next one goes on.
const maxSparedEvents = 20

// group is the event of nodes that stay for this word, with what must change before they are told again. It is empty for words that
// pass by themselves and for those that tellSpared tells. Which of several reasons consolidation comes upon first changes from pass to pass and is no news.
func group(word string) (event, group string) {
	switch word {
	case "static", "never", "policy", "pool":
		return "Unconsolidatable", word
	case "expired":
		return "DisruptionBlocked", word
	case "stuck", "alike", "payback", "threshold", "balanced", "flexibility", "worth", "small":
		return "Unconsolidatable", "dear"
	}
	return "", ""
}

// explain writes events on nodes that stay because consolidation leaves them alone: one when the kind of reason is another than the one that was told last.
func (m *mover) explain(ctx context.Context, p disrupt.Plan, before disrupt.Memory, next *disrupt.Memory) {
	next.Told = map[string]string{}
	told := 0
	for _, s := range p.Spared {
		reason, kind := group(s.Word)
		old := before.Told[s.Claim]
		if kind == "" || kind == old || told == maxSparedEvents {
			if old != "" {
				next.Told[s.Claim] = old
			}
			continue
		}
		told++
		next.Told[s.Claim] = kind
		m.tell(ctx, s.Claim, cluster.Event{Reason: reason, Message: s.Why, Every: time.Hour})
	}
}

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
			Values: []metric.Value{metric.Gauge(metric.Eligible, float64(p.Eligible[reason]))}})
	}
	words, gone := map[string]int{}, map[string]int{}
	for _, s := range p.Spared {
		words[s.Word]++
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
