package notices

import (
	"fmt"

	"joiner.sh/pkg/nodeclaim/interruption"
)

// EarlyError is about a notice whose instance may be one that is just being launched. It is worth handling again, a
// minute later too.
type EarlyError struct{ Notice interruption.Notice }

// Error names the instance.
func (e *EarlyError) Error() string {
	return fmt.Sprintf("notice %s about instance %s: no NodeClaim has it, and a launch from before the notice is not written down yet",
		e.Notice.Kind, e.Notice.Instance)
}

// lateError leaves a notice, or the rest of what comes of it, to the next invocation. One that is cut off would have
// all notices of its batch handled again.
type lateError struct{}

func (lateError) Error() string { return "no time is left for it in this invocation" }
