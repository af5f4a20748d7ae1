package disruption

import (
	"fmt"
	"maps"
	"time"

	v1 "joiner.sh/pkg/api/v1"
)

// CommandFailure records that commands about a NodeClaim were rolled back.
type CommandFailure struct {
	At    time.Time `json:"at"`              // the last
	Again int       `json:"again,omitempty"` // consolidations that failed again soon after they were tried again
}

// maxRetryAfter bounds how long consolidation leaves a node alone, however often commands about it failed.
const maxRetryAfter = 8 * time.Hour

// WithFailure returns the memory with commands about these NodeClaims as failed just now: they could not be begun.
func (m Memory) WithFailure(claims []string, now time.Time) Memory {
	m.Failed = maps.Clone(m.Failed)
	if m.Failed == nil {
		m.Failed = map[string]CommandFailure{}
	}
	for _, name := range claims {
		m.Failed[name] = CommandFailure{At: now, Again: m.Failed[name].Again}
	}
	return m
}

// rememberFailure records a failed command on its nodes: what has just failed fails again. Consolidation, which
// launches nodes for nothing each time, waits twice as long after each further failure. Drift does not wait longer,
// because it must be done.
func (pr *progress) rememberFailure(claims []string, reason v1.DisruptionReason, why string) {
	for _, name := range claims {
		f, again := pr.failures[name]
		if again && reason == v1.DisruptionUnderutilized {
			f.Again++
		}
		f.At = pr.now()
		pr.failures[name] = f
		if n := pr.byClaim[name]; n != nil && n.notConsolidated.reason == "" {
			n.notConsolidated = refusal{IneligibleFailed, why}
		}
	}
}

// keepFailures returns the failures of the pass before that are less than two waits old: what fails again by then fails
// again.
func (st *State) keepFailures(failures map[string]CommandFailure) map[string]CommandFailure {
	out := map[string]CommandFailure{}
	for name, f := range failures {
		if st.byClaim[name] == nil || !st.now().Before(f.At.Add(2*st.rules.waitAfter(f))) {
			continue
		}
		if f.At.After(st.now()) {
			f.At = st.now() // the clock was set back
		}
		out[name] = f
	}
	return out
}

// waitAfter returns how long consolidation leaves a node alone after the failure.
func (r disruptionRules) waitAfter(f CommandFailure) time.Duration {
	wait := r.retryAfter
	for range f.Again {
		if wait *= 2; wait >= maxRetryAfter {
			return maxRetryAfter
		}
	}
	return wait
}

// failedWithin returns the refusal of a node of which a command failed less than wait ago.
func (cs *candidates) failedWithin(n *stateNode, wait time.Duration) refusal {
	f, ok := cs.failures[n.Claim.Name]
	if !ok || !cs.now().Before(f.At.Add(wait)) {
		return refusal{}
	}
	return refusal{IneligibleFailed, fmt.Sprintf("a disruption of it came to nothing less than %s ago", wait)}
}
