// Package disruption decides which nodes go by choice: because they are empty, because they are not what their pool asks for any
// more, or because their pods can run for less.
//
// What-if is the packer on a snapshot without the nodes. A disruption is proposed in one pass and begun in a later one if it still
// holds; it ends, nodes gone, once all their pods fit on nodes that are ready, or is taken back. The package keeps no state: what
// is under way stands on the NodeClaims (see Mark), the rest in the Memory that each pass gets and returns.
//
// The path of a decision: view.go reads the snapshot once, baseline.go makes of it what questions start from, candidate.go says who may
// go, progress.go looks after what is under way, empty.go, drift.go and consolidate.go find what to do next, search.go and window.go for
// which nodes, work.go until when, and guard.go keeps replacements from costing more than they save.
package disruption

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/plan"
	"joiner/pkg/provisioning/staticcapacity"
)

// Command is one disruption: nodes that go together, and what must be ready before.
type Command struct {
	ID       string // names the command on the objects it touches
	Reason   v1.DisruptionReason
	Claims   []string      // NodeClaims that go, sorted
	Launches []plan.Launch // replacements
	SavesUSD float64       // per hour; below zero where drift makes a node dearer
	Moves    int           // pods that will be evicted
}

// String says the command in one line.
func (c Command) String() string {
	out := fmt.Sprintf("%s: %s", c.Reason, strings.Join(c.Claims, ","))
	switch len(c.Launches) {
	case 0:
		out += " without replacement"
	default:
		var with []string
		for _, l := range c.Launches {
			with = append(with, l.Choice.String())
		}
		out += " for " + strings.Join(with, ", ")
	}
	return fmt.Sprintf("%s, saves %.4f USD/h, moves %d pods", out, c.SavesUSD, c.Moves)
}

// EndedCommand is a command that ends in this pass.
type EndedCommand struct {
	Command string // its id
	Reason  v1.DisruptionReason
	Claims  []string // NodeClaims that it is about and that still exist, sorted
	Unused  []string // of a command taken back: replacements that nothing runs on, sorted
	Why     string
}

// WithdrawnProposal is a proposal that does not hold any more.
type WithdrawnProposal struct {
	Reason v1.DisruptionReason
	Claims []string // sorted
	Why    string
}

// NotDisrupted is a node that stays, with the reason.
type NotDisrupted struct {
	Claim, Node string
	Pool        string
	Word        string // for metrics, one of few
	Why         string // a sentence
}

// String says it in one line.
func (s NotDisrupted) String() string { return fmt.Sprintf("spare %s: %s", s.Claim, s.Why) }

// Plan is what one pass does about disruption.
type Plan struct {
	Begin    []Command                        // confirmed: mark, replace, taint
	Finish   []EndedCommand                   // replaced: delete the claims
	Undo     []EndedCommand                   // failed: take the taint and the marks away
	Proposed []Command                        // held back until a later pass confirms them
	Dropped  []WithdrawnProposal              `json:",omitempty"`
	Reported []Command                        // of pools that only report
	Waiting  []string                         // commands under way, and what each waits for
	Starting []string                         `json:",omitempty"` // replacements that they wait for; not told in words
	Spared   []NotDisrupted                   // sorted by claim
	Eligible map[v1.DisruptionReason][]string // NodeClaims that are a case for the reason and may go, whatever budgets and prices say; sorted
	Closed   []BudgetExhausted                `json:",omitempty"` // pools from which no node may go now, sorted; not told in words
	Still    []StabilityNote                  `json:",omitempty"` // what NodeClaims are to say about quiet nodes; not told in words
	Faults   []plan.Fault                     `json:",omitempty"` // what the decision failed about and was taken without
}

// Lines is the plan as text, one line for each decision, those of Spared last.
func (p Plan) Lines() []string {
	var out []string
	list := func(verb string, all []Command) {
		for _, c := range all {
			out = append(out, verb+" "+c.String())
		}
	}
	ends := func(verb string, all []EndedCommand) {
		for _, e := range all {
			out = append(out, fmt.Sprintf("%s %s: %s", verb, strings.Join(e.Claims, ","), e.Why))
		}
	}
	ends("finish", p.Finish)
	ends("undo", p.Undo)
	for _, x := range p.Dropped {
		out = append(out, fmt.Sprintf("drop %s: %s: %s", x.Reason, strings.Join(x.Claims, ","), x.Why))
	}
	list("begin", p.Begin)
	list("propose", p.Proposed)
	list("report", p.Reported)
	for _, w := range p.Waiting {
		out = append(out, "wait "+w)
	}
	for _, f := range p.Faults {
		out = append(out, f.String())
	}
	for _, s := range p.Spared {
		out = append(out, s.String())
	}
	return out
}

// Memory is what a pass tells the next one. Without it nothing is decided wrongly, only later.
type Memory struct {
	Quiet     map[string]PodStability   `json:"quiet,omitempty"` // by NodeClaim
	Proposals []Proposal                `json:"proposals,omitempty"`
	Failed    map[string]CommandFailure `json:"failed,omitempty"`   // by NodeClaim: commands about it that were taken back
	InVain    map[string]time.Time      `json:"inVain,omitempty"`   // by id of a command under way: since when it has waited for nothing
	Drifted   string                    `json:"drifted,omitempty"`  // the drifted NodeClaim that was asked about last
	DriftWas  bool                      `json:"driftWas,omitempty"` // the last command that was found to move pods was about drifted nodes
	Asked     SearchState               `json:"asked,omitzero"`
	Late      Overruns                  `json:"late,omitzero"`
	Stays     map[string]Retention      `json:"stays,omitempty"` // by NodeClaim
	Stray     map[string]time.Time      `json:"stray,omitempty"` // by NodeClaim: since when its node is tainted and nothing is under way
	Report    ReportState               `json:"report,omitzero"`
	Aside     []cluster.Aside           `json:"aside,omitempty"` // what decisions fail about
}

// ReportState is what the search about pools that only report goes on with.
type ReportState struct {
	Drifted  string      `json:"drifted,omitempty"`
	DriftWas bool        `json:"driftWas,omitempty"`
	Asked    SearchState `json:"asked,omitzero"`
	Found    []Proposal  `json:"found,omitempty"` // what would save, as found last
}

// Retention is for which kind of reason a node stays, and what was told of that. Whoever tells it keeps it; nothing is decided by it.
type Retention struct {
	Kind   string    `json:"kind,omitempty"` // of the reason
	Since  time.Time `json:"since"`          // for that kind
	Told   string    `json:"told,omitempty"` // the kind that an event told last
	ToldAt time.Time `json:"toldAt,omitzero"`
	Word   string    `json:"word,omitempty"` // the reason that was logged last
	Logged time.Time `json:"logged,omitzero"`
}

// SearchState is what the search for something cheaper has been answered with no about.
type SearchState struct {
	World  uint64                    `json:"world,omitempty"`  // digest of all that the answers depend on
	Sets   []uint64                  `json:"sets,omitempty"`   // digests of sets of nodes, sorted
	Later  []uint64                  `json:"later,omitempty"`  // sets that were asked about in other worlds, when the questions were used up: others come first
	Rest   []string                  `json:"rest,omitempty"`   // NodeClaims of a set that was asked about, and for which there was no work left to ask on
	Window SearchWindow              `json:"window,omitzero"`  // where the search has come to among sets further down
	Missed []Shortfall               `json:"missed,omitempty"` // by the number of binary digits of their size: sets that were asked about
	Done   bool                      `json:"done,omitempty"`   // all was asked
	Kept   map[string]RetainedReason `json:"kept,omitempty"`   // if done, by NodeClaim: why it stays, where it is not that nothing cheaper was found
}

// Shortfall is by how much sets of about one size that were asked about fell short of what they promised to earn.
type Shortfall struct {
	Sets  int     `json:"sets"`
	Least float64 `json:"least"` // USD
}

// RetainedReason is why a node stays.
type RetainedReason struct {
	Word string `json:"word"`
	Why  string `json:"why"`
}

// Proposal is a disruption that waits to be confirmed.
type Proposal struct {
	Reason v1.DisruptionReason `json:"reason"`
	Claims []string            `json:"claims"` // sorted
	Since  time.Time           `json:"since"`
}

// pass is one pass: what it has taken so far, and those it asks.
type pass struct {
	*State
	budget        *Budget
	eval          *Evaluator
	consolidation consolidation
	candidates    *candidates
	moving        bool                                    // a command of this pass moves pods
	renewing      map[string]int                          // by static pool: nodes that commands of this pass replace
	headroom      map[string]*staticcapacity.PoolHeadroom // by static pool
}

func newPass(st *State, failures map[string]CommandFailure, building map[string]bool) *pass {
	budget, eval := newBudget(st.s), newEvaluator(st)
	return &pass{State: st, budget: budget, eval: eval, consolidation: newConsolidation(eval),
		candidates: &candidates{State: st, budget: budget, failures: failures, building: building},
		renewing:   map[string]int{}, headroom: map[string]*staticcapacity.PoolHeadroom{}}
}

// decidePlan looks after the commands under way, confirms or withdraws what was proposed before, and searches for more.
func decidePlan(st *State, m Memory) (Plan, Memory) {
	p, after, _ := decideMeasured(st, m)
	return p, after
}

// decideMeasured is decidePlan with the work that it took.
func decideMeasured(st *State, m Memory) (Plan, Memory, int) {
	var p Plan
	pr := newProgress(st, m)
	pr.advanceCommands(&p)
	orphaned := pr.rollBackOrphanedTaints(m.Stray, &p)
	ps := newPass(st, pr.failures, pr.building)
	ps.candidates.filterCandidates()
	p.Eligible = ps.candidates.countEligible()
	ps.hibernatePools(&p)
	after := Memory{Quiet: st.quiet, Drifted: m.Drifted, DriftWas: m.DriftWas, Asked: m.Asked, Late: m.Late.decayAt(st.now()), Report: m.Report, Failed: pr.failures, InVain: pr.stalled, Stray: orphaned}
	ps.confirmProposals(m.Proposals, &p, &after)
	moves := ps.searchCommands(&p, &after)
	p.Spared, p.Closed, p.Still = ps.candidates.listNotDisrupted(moves), ps.budget.exhausted, st.changedStability()
	return p, after, ps.eval.meter.work
}

// confirmProposals begins what was proposed long enough ago and still holds. What does not hold any more is forgotten; what is too young, or would
// move pods after another command of this pass that does, waits on: what each needs was asked for with all other pods standing still.
func (ps *pass) confirmProposals(all []Proposal, p *Plan, after *Memory) {
	if slices.ContainsFunc(all, func(x Proposal) bool { return x.Reason == v1.DisruptionUnderutilized }) {
		ps.recognizeInputs()
	}
	for _, old := range all {
		if old.Since.After(ps.now()) {
			continue // the clock was set back, and nobody knows how long it waits: it is found again
		}
		c, ok := ps.decideAgain(old, true)
		switch {
		case !ok:
			p.Dropped = append(p.Dropped, WithdrawnProposal{old.Reason, old.Claims, ps.withdrawalReason(old)})
		case ps.now().Before(old.Since.Add(ps.rules.confirmAfter)), ps.moving && ps.movesPods(c):
			after.Proposals = append(after.Proposals, old)
			p.Proposed = append(p.Proposed, c)
			ps.takeBudgets(c)
		default:
			ps.takeBudgets(c)
			p.Begin = append(p.Begin, c)
		}
	}
}

// recognizeInputs finds the digest of the world, so that what was asked when it was searched is not asked again.
func (ps *pass) recognizeInputs() {
	kept := make([]refusal, len(ps.nodes))
	for i, n := range ps.nodes {
		kept[i] = n.kept
	}
	ps.eval.world = ps.digestInputs(ps.consolidationCandidates())
	for i, n := range ps.nodes {
		n.kept = kept[i]
	}
}

// withdrawalReason says why a proposal does not hold any more, by the first of its nodes that has a reason.
func (ps *pass) withdrawalReason(old Proposal) string {
	for _, name := range old.Claims {
		n := ps.byClaim[name]
		if n == nil {
			return name + " is gone"
		}
		for _, r := range []refusal{n.barred, n.kept} {
			if r.word != "" {
				return name + ": " + r.why
			}
		}
	}
	switch {
	case ps.rules.steps == 0:
		return noTime
	case old.Reason == v1.DisruptionDrifted && ps.beyondOne(ps.named(old.Claims)):
		return "more of the nodes have pods to move than one command about drift replaces"
	}
	return "no case for " + string(old.Reason) + " any more"
}

// decideAgain decides about the nodes of a proposal anew. Of empty nodes those that still are go; else all must, as proposed. With patient the answer
// does not depend on how much work is left.
func (ps *pass) decideAgain(old Proposal, patient bool) (Command, bool) {
	var set []*stateNode
	for _, name := range old.Claims {
		n := ps.byClaim[name]
		if n != nil && ps.candidates.mayDisrupt(n, old.Reason) {
			set = append(set, n)
		}
	}
	if old.Reason == v1.DisruptionEmpty {
		return ps.deleteCommand(ps.budget.Limit(set, old.Reason), old.Reason)
	}
	if len(set) < len(old.Claims) || len(ps.budget.Limit(set, old.Reason)) < len(set) {
		return Command{}, false
	}
	switch {
	case len(set) == 0:
		return Command{}, false
	case set[0].inStaticPool():
		return ps.replaceStatic(set[0])
	case ps.rules.steps == 0, old.Reason == v1.DisruptionDrifted && ps.beyondOne(set):
		return Command{}, false
	case old.Reason == v1.DisruptionDrifted:
		return ps.replaceDrifted(set)
	}
	found := ps.consolidation.evaluateSet(set, patient)
	return found.Command, found.ok
}

// podMoves tells whether a command moves pods: one of this pass, and one that is only reported.
type podMoves struct{ acting, reported bool }

// searchCommands looks for new disruptions, those that matter most first, and then for what pools that only report would have.
func (ps *pass) searchCommands(p *Plan, after *Memory) (moves podMoves) {
	ps.eval.meter.startSearch()
	for _, c := range ps.findCommand(after) {
		p.Proposed = append(p.Proposed, c)
		after.Proposals = append(after.Proposals, Proposal{Reason: c.Reason, Claims: c.Claims, Since: ps.now()})
	}
	ps.candidates.reporting, ps.moving, moves.acting = true, false, ps.moving
	ps.eval.meter.startSearch()
	would := Memory{Drifted: after.Report.Drifted, DriftWas: after.Report.DriftWas, Asked: after.Report.Asked, Proposals: after.Report.Found}
	p.Reported = ps.findCommand(&would)
	after.Report = ReportState{Drifted: would.Drifted, DriftWas: would.DriftWas, Asked: would.Asked}
	for _, c := range p.Reported {
		if c.Reason == v1.DisruptionUnderutilized {
			after.Report.Found = append(after.Report.Found, Proposal{Reason: c.Reason, Claims: c.Claims})
		}
	}
	moves.reported = ps.moving
	return moves
}

// findCommand returns at most one command that moves pods, because two could be after the same room, one about empty nodes, and those of static
// pools, whose nodes bring their own room. Drift comes before price, but not twice in a row where something could be cheaper: else the nodes
// of one pool that drifted would keep all others waiting until the last of them is replaced.
func (ps *pass) findCommand(m *Memory) (out []Command) {
	out = ps.findStatic()
	order := []func(*Memory) (Command, bool){ps.findEmpty, ps.findDrifted, ps.findAgain, ps.findCheaper}
	if m.DriftWas {
		order = []func(*Memory) (Command, bool){ps.findEmpty, ps.findAgain, ps.findCheaper, ps.findDrifted}
	}
	for _, next := range order {
		if ps.moving {
			return out
		}
		if c, ok := next(m); ok {
			ps.takeBudgets(c)
			out = append(out, c)
			m.DriftWas = m.DriftWas && c.Reason == v1.DisruptionEmpty || c.Reason == v1.DisruptionDrifted
		}
	}
	if !ps.moving {
		m.DriftWas = false
	}
	return out
}

// findAgain finds what was reported before, which nobody has done since, without looking for it.
func (ps *pass) findAgain(m *Memory) (Command, bool) {
	if !ps.candidates.reporting {
		return Command{}, false
	}
	for _, old := range m.Proposals {
		if c, ok := ps.decideAgain(old, false); ok {
			return c, true
		}
	}
	return Command{}, false
}

// ChangedSince says what has changed on the nodes of a command since it was decided, from a snapshot read just now and what the deciding pass
// remembered, or nothing. It does not look at prices or room.
func ChangedSince(s cluster.Snapshot, c Command, decided Memory) string {
	st := &State{s: s, byClaim: map[string]*stateNode{}}
	st.indexNodes()
	obstacles := s.Obstacles()
	for _, name := range c.Claims {
		n := st.byClaim[name]
		switch {
		case n == nil || n.Node == nil:
			return name + " or its node is gone"
		case n.MarkedForDeletion():
			return name + ": it is leaving already"
		case isProtected(n):
			return name + ": its node carries " + v1.AnnotationDoNotDisrupt
		case sumPodEvents(n.pods) != decided.Quiet[name].Sum:
			return name + ": its pods are others by now"
		case c.Reason == v1.DisruptionDrifted && n.Claim.TerminationGrace != nil:
			continue
		}
		if _, why := obstacles.Of(n.pods); why != "" {
			return name + ": " + why
		}
	}
	return ""
}
