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
