package disrupt

import (
	"context"
	"log/slog"
	"slices"
	"time"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
)

// How often one hears why a node stays: soon when that becomes another kind of reason, but not for a state that passes
// in a few minutes, and again before the API server forgets events, which it does after an hour.
const (
	maxSparedEvents = 20 // nodes that one pass tells of; the next one goes on
	maxStayLines    = 100
	lasting         = 10 * time.Minute
	toldAgain       = 55 * time.Minute
	loggedAgain     = time.Hour
)

// Kinds of reasons that hold several. Which of several reasons consolidation comes upon first changes from pass to pass
// and is no news, nor is whether a node waits for its budget or for others.
const (
	kindDear  = "dear"
	kindWaits = "waits" // they pass by themselves
)

// reasonEvent says what nodes that are not disrupted are told about a reason.
type reasonEvent struct {
	event string // empty: the events of nodes that start, move pods or end tell of it
	kind  string // a change of the reason within a kind is no news; empty: recordNotDisrupted tells of it, at once
}

// reasonEvents has the event of every reason.
func reasonEvents() map[disruption.IneligibleReason]reasonEvent {
	const blocked, unconsolidatable = "DisruptionBlocked", "Unconsolidatable"
	return map[disruption.IneligibleReason]reasonEvent{
		disruption.IneligibleLaunching: {},
		disruption.IneligibleStarting:  {},
		disruption.IneligibleLeaving:   {},
		disruption.IneligibleUnderWay:  {},
		disruption.IneligibleNotice:    {},

		disruption.IneligibleProtected:    {event: blocked},
		disruption.IneligiblePodBudget:    {event: blocked},
		disruption.IneligibleUnknownPrice: {event: blocked},
		disruption.IneligibleFailed:       {event: blocked},
		disruption.IneligibleDrifted:      {event: blocked},
		disruption.IneligibleFault:        {event: blocked},

		disruption.IneligibleStaticPool: {unconsolidatable, "static"},
		disruption.IneligibleNever:      {unconsolidatable, "never"},
		disruption.IneligiblePolicy:     {unconsolidatable, "policy"},
		disruption.IneligibleNoPool:     {unconsolidatable, "pool"},
		disruption.IneligibleExpired:    {blocked, "expired"},
		disruption.IneligibleReported:   {"DisruptionReported", "reported"},

		disruption.IneligiblePodsUnschedulable:    {unconsolidatable, kindDear},
		disruption.IneligibleSameOffering:         {unconsolidatable, kindDear},
		disruption.IneligiblePayback:              {unconsolidatable, kindDear},
		disruption.IneligibleThreshold:            {unconsolidatable, kindDear},
		disruption.IneligibleBalanced:             {unconsolidatable, kindDear},
		disruption.IneligibleFlexibility:          {unconsolidatable, kindDear},
		disruption.IneligibleSpotToSpot:           {unconsolidatable, kindDear},
		disruption.IneligibleNoCheaperAlternative: {unconsolidatable, kindDear},
		disruption.IneligibleSmallSavings:         {unconsolidatable, kindDear},

		disruption.IneligibleConsolidateAfter:  {unconsolidatable, kindWaits},
		disruption.IneligiblePaybackPending:    {unconsolidatable, kindWaits},
		disruption.IneligibleOtherCommand:      {unconsolidatable, kindWaits},
		disruption.IneligibleRollout:           {blocked, "rollout"},
		disruption.IneligibleBuffer:            {unconsolidatable, kindWaits},
		disruption.IneligibleOverruns:          {unconsolidatable, kindWaits},
		disruption.IneligibleBudget:            {blocked, kindWaits},
		disruption.IneligibleNominated:         {blocked, kindWaits},
		disruption.IneligiblePoolNotReconciled: {blocked, kindWaits},
	}
}

// nodesStaying are the nodes that stay, those included that would go if that were not only reported.
func nodesStaying(p disruption.Plan, s cluster.Snapshot) []disruption.NotDisrupted {
	if len(p.Reported) == 0 {
		return p.NotDisrupted
	}
	out := slices.Clone(p.NotDisrupted)
	for _, c := range p.Reported {
		for _, name := range c.Claims {
			x := disruption.NotDisrupted{Claim: name, Reason: disruption.IneligibleReported,
				Why: "it is only reported: " + c.String()}
			if i := slices.IndexFunc(s.Claims, func(k cluster.Claim) bool { return k.Name == name }); i >= 0 {
				x.Node, x.Pool = s.Claims[i].NodeName, s.Claims[i].Pool
			}
			out = append(out, x)
		}
	}
	return out
}

// updateRetention brings what is remembered of the nodes that stay up to date. What one that goes was told of is
// forgotten.
func updateRetention(all []disruption.NotDisrupted, before map[string]disruption.Retention,
	now time.Time) map[string]disruption.Retention {
	out := make(map[string]disruption.Retention, len(all))
	now = now.UTC().Truncate(time.Second)
	events := reasonEvents()
	for _, x := range all {
		s, known := before[x.Claim]
		if kind := events[x.Reason].kind; !known || s.Kind != kind || s.Since.After(now) { // or the clock was set back
			s.Kind, s.Since = kind, now
		}
		out[x.Claim] = s
	}
	return out
}

// logStays writes a line for each node that stays for another reason than the one that was logged last, and for all of
// them once an hour. One pass writes a hundred at most, those first that were logged longest ago; the next one goes on.
func logStays(log *slog.Logger, all []disruption.NotDisrupted, stays map[string]disruption.Retention, now time.Time) {
	now = now.UTC().Truncate(time.Second)
	due := slices.DeleteFunc(slices.Clone(all), func(x disruption.NotDisrupted) bool {
		s := stays[x.Claim]
		return s.Reason == x.Reason && !s.Logged.After(now) && now.Sub(s.Logged) < loggedAgain
	})
	slices.SortStableFunc(due, func(a, b disruption.NotDisrupted) int {
		return stays[a.Claim].Logged.Compare(stays[b.Claim].Logged)
	})
	for _, x := range due[:min(len(due), maxStayLines)] {
		s := stays[x.Claim]
		s.Reason, s.Logged = x.Reason, now
		stays[x.Claim] = s
		log.Info(x.String(), "claim", x.Claim, "node", x.Node, "nodepool", x.Pool, "reason", string(x.Reason))
	}
}

// recordReasons writes events on nodes about why they stay, those first that were told of longest ago.
func (m *commandApplier) recordReasons(ctx context.Context, all []disruption.NotDisrupted,
	stays map[string]disruption.Retention) {
	now, events := m.d.Now().UTC().Truncate(time.Second), reasonEvents()
	due := slices.DeleteFunc(slices.Clone(all), func(x disruption.NotDisrupted) bool {
		return !worthTelling(events[x.Reason].kind, stays[x.Claim], now)
	})
	slices.SortStableFunc(due, func(a, b disruption.NotDisrupted) int {
		return stays[a.Claim].ToldAt.Compare(stays[b.Claim].ToldAt)
	})
	for _, x := range due[:min(len(due), maxSparedEvents)] {
		s := stays[x.Claim]
		s.Told, s.ToldAt = events[x.Reason].kind, now
		stays[x.Claim] = s
		m.recordOnClaimAndNode(ctx, x.Claim, cluster.Event{Reason: events[x.Reason].event, Message: x.Why})
	}
}

// worthTelling reports whether an event tells now of a reason of that kind why the node stays: at once when there was
// none yet and the reason does not pass by itself, else when it has lasted, and again from time to time.
func worthTelling(kind string, s disruption.Retention, now time.Time) bool {
	switch {
	case kind == "":
		return false
	case kind == s.Told:
		return s.ToldAt.After(now) || now.Sub(s.ToldAt) >= toldAgain
	}
	return now.Sub(s.Since) >= lasting || s.Told == "" && kind != kindWaits
}
