package disruption

import (
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/binpack"
)

// Cache keeps from one pass to the next what was found out, as long as all is the same that it depends on. The zero
// value is empty, a nil one keeps nothing. It may not be used concurrently.
type Cache struct {
	binpack.OfferingCache // what is sold
	reported              reportedCommand
}

// reportedCommand is a command of pools that only report, which is found in each pass until it is no case any more.
type reportedCommand struct {
	inputs  uint64 // digest of all that it depends on; 0 where nothing is kept
	about   Proposal
	command Command
	reasons map[string]RetainedReason // why nodes stay, as found on the way
}

func (c *Cache) offerings() *binpack.OfferingCache {
	if c == nil {
		return nil
	}
	return &c.OfferingCache
}

// recallReported returns the command about the proposal that a pass before reported from the same inputs.
func (ps *pass) recallReported(about Proposal) (Command, bool) {
	if ps.state.cache == nil {
		return Command{}, false
	}
	r := ps.state.cache.reported
	if r.inputs == 0 || r.inputs != ps.eval.inputs || r.about.Reason != about.Reason ||
		!slices.Equal(r.about.Claims, about.Claims) {
		return Command{}, false
	}
	ps.candidates.recallReasons(ps.state.nodes, r.reasons)
	c := r.command // its name and how long it pays back count from now
	c.ID, c.Launches = commandID(c.Reason, c.Claims, ps.state.now()), slices.Clone(c.Launches)
	ps.eval.payback.writePayback(c)
	return c, true
}

// keepReported keeps the command for the next pass, unless its name is on new nodes, as it is where these are held for
// pods.
func (ps *pass) keepReported(about Proposal, c Command) {
	held := slices.ContainsFunc(c.Launches, func(l plan.Launch) bool {
		return l.Annotations[v1.AnnotationNominatedOwners] != ""
	})
	if ps.state.cache != nil && !held {
		ps.state.cache.reported = reportedCommand{ps.eval.inputs, about, c,
			ps.candidates.rememberedReasons(ps.state.nodes)}
	}
}
