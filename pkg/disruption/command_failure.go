package disruption

import (
	"fmt"
	"time"

	v1 "joiner/pkg/api/v1"
)

// CommandFailure is that commands about a NodeClaim came to nothing.
type CommandFailure struct {
	At    time.Time `json:"at"`              // the last
	Again int       `json:"again,omitempty"` // consolidations that failed again soon after they were tried again
}

// mostRetryAfter bounds how long consolidation leaves a node alone, however often it came to nothing.
const mostRetryAfter = 8 * time.Hour

// rememberFailure remembers for a while about which nodes a command came to nothing: what has just failed fails again. Consolidation, which launches nodes in
// vain each time, waits twice as long after each further failure. Drift must come, and does not.
func (pr *progress) rememberFailure(claims []string, reason v1.DisruptionReason, why string) {
	for _, name := range claims {
		f, again := pr.failures[name]
		if again && reason == v1.DisruptionUnderutilized {
			f.Again++
		}
		f.At = pr.now()
		pr.failures[name] = f
		if n := pr.byClaim[name]; n != nil && n.kept.reason == "" {
			n.kept = refusal{IneligibleFailed, why}
		}
	}
}

// keepFailures returns the failures of the pass before that are less than two waits old: what fails again by then fails again.
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

// waitAfter is how long consolidation leaves the node alone.
func (r disruptionRules) waitAfter(f CommandFailure) time.Duration {
	wait := r.retryAfter
	for range f.Again {
		if wait *= 2; wait >= mostRetryAfter {
			return mostRetryAfter
		}
	}
	return wait
}

// failedWithin is what keeps a node of which a command came to nothing less than so long ago.
func (cs *candidates) failedWithin(n *stateNode, wait time.Duration) refusal {
	f, ok := cs.failures[n.Claim.Name]
	if !ok || !cs.now().Before(f.At.Add(wait)) {
		return refusal{}
	}
	return refusal{IneligibleFailed, fmt.Sprintf("a disruption of it came to nothing less than %s ago", wait)}
}
