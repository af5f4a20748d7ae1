package controllers

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"joiner/pkg/disruption"
	"joiner/pkg/model/cluster"
)

// How often one hears why a node stays: soon when that becomes another kind of reason, but not for a state that passes in a few minutes, and
// again before the API server forgets events, which it does after an hour.
const (
	maxSparedEvents = 20 // nodes that one pass tells of; the next one goes on
	lasting         = 10 * time.Minute
	toldAgain       = 55 * time.Minute
	loggedAgain     = time.Hour
)

// wordReported is the word of nodes that would go if that were not only reported.
const wordReported = "reported"

// Kinds of reasons that hold several words. Which of several reasons consolidation comes upon first changes from pass to pass and is no
// news, nor is whether a node waits for its budget or for others.
const (
	kindDear  = "dear"
	kindWaits = "waits" // they pass by themselves
)

// eventGroup is the event of nodes that stay for this word, and the kind of reason that it is. Both are empty for words that others tell of: tellSpared,
// and whoever starts, moves and ends nodes.
func eventGroup(word string) (event, kind string) {
	switch word {
	case "static", "never", "policy", "pool":
		return "Unconsolidatable", word
	case "expired":
		return "DisruptionBlocked", word
	case wordReported:
		return "DisruptionReported", word
	case "stuck", "alike", "payback", "threshold", "balanced", "flexibility", "worth", "small":
		return "Unconsolidatable", kindDear
	case "young", "settled", "turn", "buffer", "late":
		return "Unconsolidatable", kindWaits
	case "budget", "nominated", "unseen":
		return "DisruptionBlocked", kindWaits
	}
	return "", ""
}

// nodesStaying are the nodes that stay, those included that would go if that were not only reported.
func nodesStaying(p disruption.Plan, s cluster.Snapshot) []disruption.NotDisrupted {
	if len(p.Reported) == 0 {
		return p.Spared
	}
	out := slices.Clone(p.Spared)
	for _, c := range p.Reported {
		for _, name := range c.Claims {
			x := disruption.NotDisrupted{Claim: name, Word: wordReported, Why: "it is only reported: " + c.String()}
			if i := slices.IndexFunc(s.Claims, func(k cluster.Claim) bool { return k.Name == name }); i >= 0 {
				x.Node, x.Pool = s.Claims[i].NodeName, s.Claims[i].Pool
			}
			out = append(out, x)
		}
	}
	return out
}

// updateRetention brings what is remembered of the nodes that stay up to date. What one that goes was told of is forgotten.
func updateRetention(all []disruption.NotDisrupted, before map[string]disruption.Retention, now time.Time) map[string]disruption.Retention {
	out := make(map[string]disruption.Retention, len(all))
	now = now.UTC().Truncate(time.Second)
	for _, x := range all {
		s, known := before[x.Claim]
		if _, kind := eventGroup(x.Word); !known || s.Kind != kind || s.Since.After(now) { // or the clock was set back
			s.Kind, s.Since = kind, now
		}
		out[x.Claim] = s
	}
	return out
}

// logStays writes a line for each node that stays for another reason than the one that was logged last, and for all of them once an hour.
func logStays(log *slog.Logger, all []disruption.NotDisrupted, stays map[string]disruption.Retention, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	for _, x := range all {
		s := stays[x.Claim]
		if s.Word == x.Word && !s.Logged.After(now) && now.Sub(s.Logged) < loggedAgain {
			continue
		}
		s.Word, s.Logged = x.Word, now
		stays[x.Claim] = s
		log.Info(x.String(), "claim", x.Claim, "node", x.Node, "nodepool", x.Pool, "reason", x.Word)
	}
}

// recordReasons writes events on nodes about why they stay, those first that were told of longest ago.
func (m *commandApplier) recordReasons(ctx context.Context, all []disruption.NotDisrupted, stays map[string]disruption.Retention) {
	now := m.d.Now().UTC().Truncate(time.Second)
	due := slices.DeleteFunc(slices.Clone(all), func(x disruption.NotDisrupted) bool { return !worthTelling(x, stays[x.Claim], now) })
	slices.SortStableFunc(due, func(a, b disruption.NotDisrupted) int { return stays[a.Claim].ToldAt.Compare(stays[b.Claim].ToldAt) })
	for _, x := range due[:min(len(due), maxSparedEvents)] {
		event, kind := eventGroup(x.Word)
		s := stays[x.Claim]
		s.Told, s.ToldAt = kind, now
		stays[x.Claim] = s
		m.recordOnClaimAndNode(ctx, x.Claim, cluster.Event{Reason: event, Message: x.Why})
	}
}

// worthTelling reports whether an event tells now why the node stays: at once when there was none yet and the reason does not pass by
// itself, else when it has lasted, and again from time to time.
func worthTelling(x disruption.NotDisrupted, s disruption.Retention, now time.Time) bool {
	_, kind := eventGroup(x.Word)
	switch {
	case kind == "":
		return false
	case kind == s.Told:
		return s.ToldAt.After(now) || now.Sub(s.ToldAt) >= toldAgain
	}
	return now.Sub(s.Since) >= lasting || s.Told == "" && kind != kindWaits
}
