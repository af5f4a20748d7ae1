package disruption

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
)

const (
	// air is how much more new nodes cost than the least that the pods on them could.
	air = 1.03
	// likely is the part of what a set promises that it may well earn, and fewAsked how many questions do not reckon with that: after so
	// many a search that has found something goes on only for sets of which that part is more.
	likely, fewAsked = 0.7, 6
	// leastPart is the part of what all nodes cost that a set must promise to save. Without it two thirds of what 500 nodes took until they
	// were at rest went into the last two thousandths of their price.
	leastPart = 0.0005
	// fewMissed is how many sets of about one size must have fallen short of what they promised for those to be left alone that promise
	// less than any of them fell short by. Without it most questions about large clusters that are nearly at rest were about such sets.
	// Sets of less than fewNodes fall short by chance, and are quickly asked about.
	fewMissed, fewNodes = 2, 8
	// mostAsked is how many sets are remembered that were asked about in vain.
	mostAsked = 1024
)

// candidateSet is a set of nodes that may be worth a question.
type candidateSet struct {
	set  []*stateNode
	usd  float64 // what it promises to earn
	work int     // that the question will be
	id   uint64
}

// setSearch is one search for something cheaper.
type setSearch struct {
	*State
	eval          *Evaluator
	consolidation consolidation
	budget        *Budget
	all           []*stateNode // candidates
	no            map[uint64]bool
	later         map[uint64]bool
	missed        []Shortfall  // by the number of binary digits of their size
	least         float64      // what a set must promise to earn
	looks         int          // how many nodes may be looked at to put together sets further down
	more          bool         // not all was asked
	asked         int          // sets
	rest          []*stateNode // of the set asked about last, if it is to be followed up in the next pass
	best          Command
	found         bool
}

// findCheaper finds nodes whose pods can run for less ( what the in-cluster original does: prefixes of one order
// up to 100 nodes, one replacement at most). Sets of nodes that promise something are put together by playing the scheduler, which is
// cheap, and the packer is asked about few of them, those that promise most first: what can go without replacement and those that waste
// most; where that comes to nothing sets further down; and then single nodes. What was answered with no is not asked again while nothing
// has changed that the answer depends on, and a search that ran out of questions goes on in the next pass.
func (ps *pass) findCheaper(m *Memory) (Command, bool) {
	if ps.rules.steps == 0 {
		return Command{}, false
	}
	all := ps.consolidationCandidates()
	if len(all) > 0 && !slices.ContainsFunc(all, func(n *stateNode) bool { return ps.budget.Left(n.pool.Name, v1.DisruptionUnderutilized) > 0 }) {
		ps.budget.Limit(all, v1.DisruptionUnderutilized)
		return Command{}, false // what was answered before stays answered
	}
	if ps.eval.world = ps.digestInputs(all); m.Asked.World != ps.eval.world {
		m.Asked = SearchState{World: ps.eval.world, Later: mergeLists(m.Asked.Later, m.Asked.Sets)}
	}
	if m.Asked.Done {
		ps.candidates.recallReasons(all, m.Asked.Kept)
		return Command{}, false
	}
	ps.eval.sortByWaste(all)
	s := &setSearch{State: ps.State, eval: ps.eval, consolidation: ps.consolidation, budget: ps.budget, all: all, no: map[uint64]bool{}, later: map[uint64]bool{}, missed: slices.Clone(m.Asked.Missed), looks: ps.rules.steps * stepLooks, least: ps.totalPrice() * leastPart * ps.rules.payback.Hours()}
	for _, id := range m.Asked.Sets {
		s.no[id] = true
	}
	for _, id := range m.Asked.Later {
		s.later[id] = true
	}
	s.resumeSet(m.Asked.Rest)
	for _, ask := range []func(){func() { s.evaluateSets(s.firstSets()) }, func() { s.askWindows(&m.Asked.Window) }, func() { s.evaluateSets(s.singleNodeSets()) }} {
		if !s.more {
			ask()
		}
		if s.found {
			m.Asked = SearchState{}
			return s.best, true
		}
	}
	m.Asked.Rest = namesOf(s.rest)
	if m.Asked.Done = !s.more; m.Asked.Done {
		m.Asked.Sets, m.Asked.Later, m.Asked.Missed, m.Asked.Window, m.Asked.Kept = nil, nil, nil, SearchWindow{}, ps.candidates.rememberedReasons(all)
	} else {
		m.Asked.Missed, m.Asked.Sets = s.missed, mergeLists(slices.Collect(maps.Keys(s.no)), nil)
	}
	return Command{}, false
}

// mergeLists is both lists in one, sorted, and not too long.
func mergeLists(a, b []uint64) []uint64 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostAsked)]
}

// evaluateSets puts the questions, those first that promise most, as long as one may be better than what was found.
func (s *setSearch) evaluateSets(ideas []candidateSet) {
	rank := func(x candidateSet) int {
		if s.later[x.id] {
			return 1
		}
		return 0
	}
	for i := range ideas {
		ideas[i].id = digestOf(ideas[i].set)
	}
	slices.SortStableFunc(ideas, func(a, b candidateSet) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.usd, a.usd)) })
	for _, x := range ideas {
		switch {
		case x.usd < s.least || s.no[x.id] || s.fallsShort(x) || s.found && x.usd*s.successShare() <= s.eval.payback.netEarningsUSD(s.best):
			continue
		case !s.mayEvaluate(x):
			s.more = true
			return
		}
		s.no[x.id] = true
		if s.evaluateOne(x, false); len(s.rest) > 0 {
			return
		}
	}
}

// evaluateOne evaluates one set and keeps the command that earns most.
func (s *setSearch) evaluateOne(x candidateSet, patient bool) {
	s.asked++
	got := s.consolidation.evaluateSet(x.set, patient)
	if s.rest = got.rest; len(s.rest) > 0 {
		s.more = true
	}
	s.noteShortfall(x, got.earnsUSD)
	if got.ok && (!s.found || s.eval.payback.netEarningsUSD(got.Command) > s.eval.payback.netEarningsUSD(s.best)) {
		s.best, s.found = got.Command, true
	}
}

// successShare is the part of its promise for which a set is asked about.
func (s *setSearch) successShare() float64 {
	if s.eval.meter.asked < fewAsked {
		return 1
	}
	return likely
}

// fallsShort reports whether sets of about that size have fallen short by more than the set promises.
func (s *setSearch) fallsShort(x candidateSet) bool {
	i := bits.Len(uint(len(x.set)))
	return len(x.set) >= fewNodes && i < len(s.missed) && s.missed[i].Sets >= fewMissed && x.usd < s.missed[i].Least
}

// noteShortfall notes by how much a set that was asked about fell short of its promise, if the packer said what it would earn.
func (s *setSearch) noteShortfall(x candidateSet, earns float64) {
	if math.IsInf(x.usd, 1) || math.IsNaN(earns) {
		return
	}
	i := bits.Len(uint(len(x.set)))
	for len(s.missed) <= i {
		s.missed = append(s.missed, Shortfall{})
	}
	m := &s.missed[i]
	if by := x.usd - earns; m.Sets == 0 || by < m.Least {
		m.Least = by
	}
	m.Sets++
}

// totalPrice is what all nodes cost, USD per hour.
func (st *State) totalPrice() (usd float64) {
	for _, n := range st.nodes {
		usd += n.price
	}
	return usd
}

// digestOf names the set.
func digestOf(set []*stateNode) uint64 {
	h := fnv.New64a()
	for _, name := range namesOf(set) {
		h.Write([]byte(name + ","))
	}
	return h.Sum64()
}

// firstSets is what can go without replacement, and the nodes that waste most.
func (s *setSearch) firstSets() []candidateSet {
	out := s.halveSet(s.budget.Limit(s.all, v1.DisruptionUnderutilized))
	if set := s.greedySet(s.all, false); len(set) > 0 {
		out = append(out, candidateSet{set: set, usd: math.Inf(1), work: s.eval.meter.of(podsOf(set), 0)}) // answered without the packer
	}
	return out
}

// halveSet are the set, its better half, and so on, as far as they promise something and are not more than two passes may do.
func (s *setSearch) halveSet(set []*stateNode) (out []candidateSet) {
	for size := len(set); size > 1; size /= 2 {
		usd, left := s.eval.simulateSavings(set[:size])
		if work := s.eval.meter.of(podsOf(set[:size]), len(left)); usd > 0 && work <= 2*s.eval.meter.most() {
			out = append(out, candidateSet{set: set[:size], usd: usd, work: work})
		}
	}
	return out
}

// singleNodeSets are the nodes that promise to earn something when they alone go.
func (s *setSearch) singleNodeSets() (out []candidateSet) {
	for _, n := range s.all {
		if len(s.budget.Limit([]*stateNode{n}, v1.DisruptionUnderutilized)) == 0 {
			continue
		}
		usd, left := s.eval.simulateSavings([]*stateNode{n})
		i := slices.IndexFunc(left, func(p *cluster.Pod) bool { return s.eval.minCost(s.eval.newPlacedSimulator(), p) >= beyond })
		switch {
		case usd > 0 && usd < s.least:
			n.kept = cmp.Or(n.kept, refusal{IneligibleSmallSavings, "its pods could run for less, but for less than a two-thousandth of what all nodes cost"})
		case usd > 0:
			out = append(out, candidateSet{set: []*stateNode{n}, usd: usd, work: s.eval.meter.of(len(n.moving), len(left))})
		case i >= 0:
			n.kept = cmp.Or(n.kept, refusal{IneligiblePodsUnschedulable, "pod " + left[i].Key() + " has no room elsewhere, and no pool launches what it needs"})
		default:
			n.kept = cmp.Or(n.kept, refusal{IneligiblePayback, "what its pods need costs as much as it does, or nearly so"})
		}
	}
	return out
}

// greedySet puts together the nodes that earn something when they go, those first that earn most for each pod moved, within the
// budgets. Pods without room elsewhere cost what the best nodes cost for them; unless that is wanted their nodes stay.
func (s *setSearch) greedySet(all []*stateNode, replace bool) []*stateNode {
	b := s.eval.newPlacedSimulator()
	defer b.UndoTo(b.Mark())
	used := map[string]int{}
	worth := map[*stateNode]float64{}
	var out []*stateNode
	for _, n := range all {
		x := b.Node(n.Node.Name)
		if x == nil || x.Bound() > 0 {
			continue // pods would move twice
		}
		if used[n.pool.Name] >= s.budget.Left(n.pool.Name, v1.DisruptionUnderutilized) {
			n.kept = cmp.Or(n.kept, budgetRefusal(v1.DisruptionUnderutilized))
			continue
		}
		before := b.Mark()
		b.RemoveNode(n.Name(), n.moving)
		bind := b.BindUntilUnschedulable
		if replace {
			bind = b.Bind
		}
		earns, ok := s.eval.estimateNode(b, n, bind(n.moving, nil), replace)
		if !ok {
			b.UndoTo(before)
			continue
		}
		used[n.pool.Name]++
		worth[n] = earns
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b *stateNode) int {
		return cmp.Or(cmp.Compare(worth[b]/b.cost, worth[a]/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}
