package disruption

import (
	"fmt"
	"slices"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
)

// CommandFailure records that commands about a NodeClaim were rolled back.
type CommandFailure struct {
	At    time.Time `json:"at,omitzero"`     // the last that says something about this NodeClaim
	Again int       `json:"again,omitempty"` // consolidations that failed again soon after they were tried again
	// when the last failed that was about others as well: until that is forgotten, commands are about this one alone
	Alone time.Time `json:"alone,omitzero"`
}

// FailuresInRow are the commands about nodes of a NodePool that launched nodes in vain, one after another.
type FailuresInRow struct {
	Times int       `json:"times"` // commands that failed; 0 is never stored
	At    time.Time `json:"at"`    // of the last
}

const (
	// mostInRow caps the failures in a row that count: consolidation waits longer for a node up to so many times, and
	// after as many of commands about a NodePool that rests: whichever nodes are to go, what is launched in their
	// place does not become what was expected. Chosen, not measured: with half of it one node that fails stops the
	// others, and with double of it six commands in a row pay for nodes that nothing runs on.
	mostInRow = 3
	// aloneFor is the time that commands are about a node alone after one about several failed. All of those have their
	// turn by then, even where budgets let one go at a time.
	aloneFor = 24 * time.Hour
)

// WithFailure returns the memory with the command as failed just now: it could not be begun, because of these of its
// NodeClaims or, if none is named, for any of them.
func (m Memory) WithFailure(c Command, because []string, now time.Time) Memory {
	m.Failed = lists.CopyMap(m.Failed)
	shared := isShared(len(c.Claims), len(c.Launches))
	wait := waitsAfter(c.Reason, shared && len(because) == 0)
	if len(because) == 0 {
		because = c.Claims
	}
	for _, name := range because {
		m.Failed[name] = m.Failed[name].failedAt(now, shared, wait)
	}
	return m
}

// isShared reports whether the nodes of a command depend on each other: replacements are made for all of them together.
func isShared(nodes, replacements int) bool { return nodes > 1 && replacements > 0 }

// waitsAfter reports whether a node is left alone for a while after a failed command. Where nobody knows which of
// several nodes is to blame, each may go by itself at once: no node waits for its neighbour. Consolidation does wait,
// which launches nodes for nothing each time.
func waitsAfter(reason v1.DisruptionReason, anyOfSeveral bool) bool {
	return !anyOfSeveral || reason == v1.DisruptionUnderutilized
}

// failedAt returns the failure with another one at the time now, of a command about several nodes if it was shared.
func (f CommandFailure) failedAt(now time.Time, shared, wait bool) CommandFailure {
	if shared {
		f.Alone = now
	}
	if wait {
		f.At = now
	}
	return f
}

// rememberFailure records a failed command on the node to blame, or on all of its nodes: what has just failed fails
// again. Consolidation, which launches nodes for nothing each time, waits twice as long after each further failure.
// Drift does not wait longer, because it must be done. Nodes that shared replacements go alone next.
func (pr *progress) rememberFailure(r *runningCommand, f commandFault) {
	if len(f.of) == 0 {
		pr.noteOutcome(r, true)
	}
	about, shared := r.claims, isShared(len(r.claims), r.mark.Replacements)
	if len(f.of) == 1 {
		about = f.of
	}
	wait := waitsAfter(r.mark.Reason, shared && len(about) > 1)
	for _, n := range about {
		name := n.Claim.Name
		old := pr.failures[name]
		again := pr.state.now().Before(old.At.Add(2 * pr.state.rules.waitAfter(old)))
		next := old.failedAt(pr.state.now(), shared, wait)
		switch {
		case again && r.mark.Reason == v1.DisruptionUnderutilized:
			next.Again++
		case !again:
			next.Again = 0
		}
		pr.failures[name] = next
		if wait {
			n.presumeNotConsolidated(refusal{IneligibleFailed, f.why})
		}
	}
}

// keepFailures returns the failures of the pass before that are less than two waits old, by when what fails again fails
// again, and those after which nodes go alone still.
func (st *State) keepFailures(failures map[string]CommandFailure) map[string]CommandFailure {
	out, now := map[string]CommandFailure{}, st.now()
	for name, f := range failures {
		if st.byClaim[name] == nil ||
			!now.Before(f.At.Add(2*st.rules.waitAfter(f))) && !now.Before(f.Alone.Add(aloneFor)) {
			continue
		}
		if f.At.After(now) { // the clock was set back
			f.At = now
		}
		if f.Alone.After(now) {
			f.Alone = now
		}
		out[name] = f
	}
	return out
}

// noteOutcome counts a command that launched nodes in vain for the NodePools of its nodes, or ends their rows with one
// that was finished. A command that launched none says nothing.
func (pr *progress) noteOutcome(r *runningCommand, failed bool) {
	if r.mark.Replacements == 0 {
		return
	}
	for pool := range lists.Set(r.claims, func(n *stateNode) string { return n.Pool() }) {
		if failed {
			pr.inRow[pool] = FailuresInRow{pr.inRow[pool].Times + 1, pr.state.now()}
		} else {
			delete(pr.inRow, pool)
		}
	}
}

// keepInRow returns the rows whose last failure is less than two waits old.
func (st *State) keepInRow(rows map[string]FailuresInRow) map[string]FailuresInRow {
	out := map[string]FailuresInRow{}
	for pool, f := range rows {
		if f.At.After(st.now()) { // the clock was set back
			f.At = st.now()
		}
		if st.now().Before(f.At.Add(2 * st.rules.retryAfter)) {
			out[pool] = f
		}
	}
	return out
}

// poolRefusal returns what keeps nodes whose pods need others in a NodePool for which nodes were launched in vain too
// often.
func (cs *candidates) poolRefusal(n *stateNode) refusal {
	f := cs.inRow[n.Pool()]
	if f.Times < mostInRow || len(n.moving) == 0 || !cs.state.now().Before(f.At.Add(cs.state.rules.retryAfter)) {
		return refusal{}
	}
	return refusal{IneligibleFailed, fmt.Sprintf("the last %d disruptions in its NodePool launched nodes in vain, the "+
		"last less than %s ago", f.Times, cs.state.rules.retryAfter)}
}

// goesAlone reports whether commands about the node are about no other, because one about several failed.
func (cs *candidates) goesAlone(n *stateNode) bool {
	return cs.state.now().Before(cs.failures[n.Claim.Name].Alone.Add(aloneFor))
}

// mayShare returns the nodes that commands may be about together.
func (cs *candidates) mayShare(set []*stateNode) []*stateNode {
	return slices.DeleteFunc(slices.Clone(set), cs.goesAlone)
}

// waitAfter returns how long consolidation leaves a node alone after the failure.
func (r disruptionRules) waitAfter(f CommandFailure) time.Duration {
	return r.retryAfter << min(f.Again, mostInRow)
}

// failedWithin returns the refusal of a node of which a command failed less than wait ago.
func (cs *candidates) failedWithin(n *stateNode, wait time.Duration) refusal {
	f, ok := cs.failures[n.Claim.Name]
	if !ok || !cs.state.now().Before(f.At.Add(wait)) {
		return refusal{}
	}
	return refusal{IneligibleFailed, fmt.Sprintf("a disruption of it came to nothing less than %s ago", wait)}
}
