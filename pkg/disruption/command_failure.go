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
func (v *state) rememberFailure(claims []string, reason v1.DisruptionReason, why string) {
	for _, name := range claims {
		f, again := v.failures[name]
		if again && reason == v1.DisruptionUnderutilized {
			f.Again++
		}
		f.At = v.now()
		v.failures[name] = f
		if n := v.byClaim[name]; n != nil && n.kept.word == "" {
			n.kept = refusal{"failed", why}
		}
	}
}

// keepFailures takes from the pass before the failures that are less than two waits old: what fails again by then fails again.
func (v *state) keepFailures(failures map[string]CommandFailure) {
	for name, f := range failures {
		if v.byClaim[name] == nil || !v.now().Before(f.At.Add(2*v.waitAfter(f))) {
			continue
		}
		if f.At.After(v.now()) {
			f.At = v.now() // the clock was set back
		}
		v.failures[name] = f
	}
}

// waitAfter is how long consolidation leaves the node alone.
func (v *state) waitAfter(f CommandFailure) time.Duration {
	wait := v.rules().retryAfter
	for range f.Again {
		if wait *= 2; wait >= mostRetryAfter {
			return mostRetryAfter
		}
	}
	return wait
}

// failedWithin is what keeps a node of which a command came to nothing less than so long ago.
func (v *state) failedWithin(n *stateNode, wait time.Duration) refusal {
	f, ok := v.failures[n.Claim.Name]
	if !ok || !v.now().Before(f.At.Add(wait)) {
		return refusal{}
	}
	return refusal{"failed", fmt.Sprintf("a disruption of it came to nothing less than %s ago", wait)}
}
