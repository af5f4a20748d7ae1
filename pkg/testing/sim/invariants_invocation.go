package sim

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/nodeclaim/interruption"
)

// longestChain caps the functions that may wake each other, one after the other. Lambda drops what would run a function
// about 16 times in one chain; half of that leaves room for what this world does not play.
const longestChain = 8

// checkChain: functions do not wake each other for ever.
func checkChain(_ *world, s invocationStarted) []string {
	if len(s.inv.chain) <= longestChain {
		return nil
	}
	return broken("%s is the end of a chain of %d: %s", s.inv, len(s.inv.chain), strings.Join(s.inv.chain, ", "))
}

// checkError: no invocation without a fault ends with an error.
func checkError(_ *world, s invocationReturned) []string {
	inv := s.inv
	_, early := errors.AsType[*notices.EarlyError](inv.err)
	if inv.err == nil || inv.faulty || early || time.Since(inv.started) >= inv.fn.Timeout {
		return nil
	}
	return broken("%s: %v", inv, inv.err)
}

// checkOwnWrite: whoever looks at the cluster sees what it wrote before.
func checkOwnWrite(_ *world, s writeRefused) []string {
	if s.claim.writer != s.by || s.by.faulty || !s.claim.written.Before(s.by.looked) {
		return nil
	}
	return broken("%s knows claim %s as it was before it wrote that itself, and has looked since", s.by, s.claim.Name)
}

// checkSeenSinceStart: whoever looks at the cluster sees what anybody wrote before the invocation began.
func checkSeenSinceStart(_ *world, s writeRefused) []string {
	if s.by.faulty || s.by.misled || s.claim.written.IsZero() || !s.claim.written.Before(s.by.started) {
		return nil
	}
	return broken("%s knows claim %s as it was before it began", s.by, s.claim.Name)
}

// isSound reports whether nothing went wrong with the invocation.
func (s invocationReturned) isSound() bool { return !s.inv.faulty && s.inv.err == nil }

// checkRefreshTold: who sees a class that refresh has not looked at wakes it.
func checkRefreshTold(_ *world, s invocationReturned) []string {
	if !s.isSound() || s.inv.fn.Name != "lifecycle" || !s.inv.unseen || s.inv.woke {
		return nil
	}
	return broken("%s saw a class that refresh has not looked at, and did not wake it", s.inv)
}

// checkUnavailableMarked: what an invocation was told is unavailable is written down.
func checkUnavailableMarked(w *world, s invocationReturned) []string {
	if !s.isSound() {
		return nil
	}
	for _, l := range s.inv.learned {
		if !slices.ContainsFunc(w.state.marks,
			func(m unavailableMark) bool { return m.OfferingKey == l.offering && !m.made.Before(l.at) }) {
			return broken("%s was refused %s and did not mark it", s.inv, l.offering)
		}
	}
	return nil
}

// checkNoticeHandled: an urgent notice that was handled has marked its claim for deletion.
func checkNoticeHandled(w *world, s invocationReturned) []string {
	kind, m := s.inv.event.Kind, w.ec2.machines[s.inv.event.Instance]
	if !s.isSound() || m == nil || m.Gone() || kind != EventSpot && kind != EventReservation {
		return nil
	}
	c := w.api.byUID[m.owner]
	if c == nil || w.api.claims[c.Name] != c || c.ProviderID == "" || !c.Deleting.IsZero() {
		return nil
	}
	return broken("%s handled the notice about %s, and claim %s goes on", s.inv, m.ID, c.Name)
}

// mostIgnored caps the invocations of lifecycle that nothing went wrong with that may leave a status be: their time may
// be up, or somebody else may write the same claim.
const mostIgnored = 3

// checkStatusHandled: invocations that were told how instances are do something about it. It counts those that did not.
func checkStatusHandled(w *world, s invocationReturned) (bad []string) {
	if !s.isSound() {
		return nil
	}
	for _, m := range s.inv.told {
		c := w.api.byUID[m.owner]
		if c == nil || w.api.claims[c.Name] != c || c.ProviderID != m.ProviderID() || !c.Deleting.IsZero() ||
			interruption.LeaveOf(c.Claim).Cause == interruption.Scheduled || !w.ec2.isUrgent(m) {
			m.ignored = 0
			continue
		}
		if m.ignored++; m.ignored == mostIgnored {
			bad = append(bad, fmt.Sprintf("%s and %d before it were told of the status of %s, and claim %s goes on",
				s.inv, mostIgnored-1, m.ID, c.Name))
		}
	}
	return bad
}

// checkForcedDrain: the time by which lifecycle says that a drain ends by force is the grace period of the claim, or
// there is a reason why its instance ends sooner.
func checkForcedDrain(w *world, s claimAnnotated) []string {
	c := s.claim
	end, ok := s.set[v1.AnnotationTerminationTimestamp]
	at, err := time.Parse(time.RFC3339, end)
	m := w.ec2.instanceOf(c)
	if !ok || s.by.fn.Name != "lifecycle" || err != nil || m == nil || m.Gone() || m.State != "running" || m.noticed ||
		w.ec2.isUnsound(m) || !m.calledOff.IsZero() {
		return nil // or it was a moment ago
	}
	from := c.Deleting
	if from.IsZero() {
		from = time.Now()
	}
	if c.TerminationGrace != nil && !at.Before(from.Add(*c.TerminationGrace-2*w.plan.skew-seconds)) {
		return nil
	}
	return broken("%s ends the drain of claim %s at %s, and nothing is amiss with %s", s.by, c.Name, end, m.ID)
}
