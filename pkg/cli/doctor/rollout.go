package doctor

import (
	"fmt"

	"joiner.sh/pkg/model/findings"
)

// Rollout is a NodeRollout.
type Rollout struct {
	Name     string
	Seen     bool // it has a status
	Problems []Problem
	Stopped  string // why its revision failed; empty while none did
}

// checkRollouts tells of NodeRollouts that nobody follows, of those that cannot do what they say, and of revisions that
// failed. Without one nothing is said.
func (e *examination) checkRollouts() {
	const check = "NodeRollouts"
	if e.f.API.Unknown != "" || len(e.f.Rollouts) == 0 {
		return
	}
	since := len(e.List)
	for _, r := range e.f.Rollouts {
		if !r.Seen {
			e.Add(findings.Broken, check, r.Name+": nobody has looked at it: its nodes drift as without it",
				"disrupt does, while there are NodeClaims: is it deployed with disruption act, and do permissions above differ?")
		}
		for _, p := range r.Problems {
			e.Add(findings.Broken, check, fmt.Sprintf("%s: %s: %s", r.Name, p.Condition, p.Message),
				"mend what it says; disrupt looks again within a minute")
		}
		if r.Stopped != "" {
			e.Add(findings.Warning, check, r.Name+": "+r.Stopped,
				"change the EC2NodeClass, or: joiner rollout resume "+r.Name)
		}
	}
	e.AddFine(since, check, fmt.Sprintf("%d are followed", len(e.f.Rollouts)))
}
