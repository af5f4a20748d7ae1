package disruption

import (
	"fmt"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/plan"
)

// EndedCommand is a command that ends in this pass.
type EndedCommand struct {
	Command string              // its id; empty where only a taint is left of it
	Reason  v1.DisruptionReason // of the command; empty without one and for sleep
	Claims  []string            // NodeClaims that it is about and that still exist, sorted
	Unused  []string            // of a command taken back: replacements that nothing runs on, sorted
	Why     string              // a sentence: what ends it
}

// WithdrawnProposal is a proposal that does not hold any more.
type WithdrawnProposal struct {
	Reason v1.DisruptionReason // that it was proposed for
	Claims []string            // sorted
	Why    string              // a sentence: what holds no more
}

// NotDisrupted is a node that stays, with the reason.
type NotDisrupted struct {
	Claim, Node string           // names of NodeClaim and node
	Pool        string           // NodePool; empty where the claim names none
	Reason      IneligibleReason // a word, for metrics and events
	Why         string           // a sentence
}

// String says it in one line.
func (s NotDisrupted) String() string { return fmt.Sprintf("not disrupting %s: %s", s.Claim, s.Why) }

// BudgetExhausted is a pool that has nodes, and whose budgets let none of them go for these reasons, however few are
// out of service.
type BudgetExhausted struct {
	Pool    string                // name of the NodePool
	Reasons []v1.DisruptionReason // sorted
}

// Plan lists all that one pass does about disruption.
type Plan struct {
	Begin    []Command      // confirmed: mark, replace, taint
	Finish   []EndedCommand // replaced: delete the claims
	RollBack []EndedCommand // failed: take the taint and the marks away
	// NodeClaims whose nodes take no more pods because a NodeRollout rolls them back, sorted
	TaintFailed []string `json:",omitempty"`
	// those that it does not roll back any more, sorted
	UntaintFailed []string `json:",omitempty"`
	// NodeClaims whose nodes take no pods while a NodeRollout drains another of a previous revision, sorted
	TaintPrevious []string `json:",omitempty"`
	// those whose nodes take pods again, sorted
	UntaintPrevious []string            `json:",omitempty"`
	Proposed        []Command           // held back until a later pass confirms them
	Withdrawn       []WithdrawnProposal `json:",omitempty"` // proposals of earlier passes that do not hold any more
	Reported        []Command           // of pools that only report
	Waiting         []string            // commands under way, and what each waits for
	Starting        []string            `json:",omitempty"` // replacements that they wait for; not told in words
	NotDisrupted    []NotDisrupted      // sorted by claim
	// NodeClaims that are a case for the reason and may go, whatever budgets and prices say; sorted
	Eligible map[v1.DisruptionReason][]string
	// pools from which no node may go now, sorted; not told in words
	BudgetsExhausted []BudgetExhausted `json:",omitempty"`
	// what NodeClaims are to say about quiet nodes; not told in words
	PodStability []StabilityNote `json:",omitempty"`
	// what the decision failed about and was taken without
	Faults []plan.Fault `json:",omitempty"`
}

// Lines is the plan as text, one line for each decision, those of NotDisrupted last.
func (p Plan) Lines() []string {
	commands := func(verb string, all []Command) []string {
		return lists.Of(all, func(c Command) string { return verb + " " + c.String() })
	}
	ended := func(verb string, all []EndedCommand) []string {
		return lists.Of(all, func(e EndedCommand) string {
			return fmt.Sprintf("%s %s: %s", verb, strings.Join(e.Claims, ","), e.Why)
		})
	}
	about := func(before string, names []string, after string) []string {
		return lists.Of(names, func(name string) string { return before + name + after })
	}
	return slices.Concat(ended("finish", p.Finish), ended("rolling back", p.RollBack),
		about("taint ", p.TaintFailed, ": its revision failed, and pods that leave others like it must not come to it"),
		about("untaint ", p.UntaintFailed, ": its revision is not rolled back any more"),
		about("taint ", p.TaintPrevious, ": its revision is to go, and pods that leave others like it must not come to it"),
		about("untaint ", p.UntaintPrevious, ": no pods leave others like it now"),
		lists.Of(p.Withdrawn, func(x WithdrawnProposal) string {
			return fmt.Sprintf("proposal withdrawn %s: %s: %s", x.Reason, strings.Join(x.Claims, ","), x.Why)
		}),
		commands("begin", p.Begin), commands("propose", p.Proposed), commands("report", p.Reported),
		about("wait ", p.Waiting, ""), lists.Of(p.Faults, plan.Fault.String),
		lists.Of(p.NotDisrupted, NotDisrupted.String))
}
