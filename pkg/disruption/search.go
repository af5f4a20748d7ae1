package disruption

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/rounding"
)

const (
	// costMargin is the cost of new nodes as a multiple of the least that the pods on them could cost. At 1 twelve
	// clusters of 200 nodes cost 0.4 % less in the mean and one 0.8 % more, for a fifth more CPU and 3 % more moves; at
	// 1.06 four of 100 cost 16 % more.
	costMargin = 1.03
	// minSavingsShare is the part of what all nodes cost that a set must promise to save. Without it two thirds of what
	// 500 nodes took until they were at rest went into the last two thousandths of their price. With half nothing
	// changes, with double four clusters of 100 nodes cost 0.2 % more.
	minSavingsShare = rounding.Slight
	// minMissed is the number of sets of about one size that must have fallen short of what they promised before
	// smaller promises are skipped. Sets are skipped that promise less than any of them fell short by. Without it most
	// questions about large clusters that are nearly at rest were about such sets. Sets of less than minMissedNodes
	// fall short by chance, and are quickly asked about: if they are skipped too, twelve clusters of 200 nodes cost
	// 0.27 % more, for half the CPU. With half four clusters of 100 nodes cost 0.2 % more, with double the same.
	minMissed, minMissedNodes = 2, 8
	// maxRemembered caps the sets that are remembered that were answered with no.
	maxRemembered = 1024
)

// candidateSet is a set of nodes that may be worth an evaluation.
type candidateSet struct {
	set  []*stateNode
	usd  float64 // what it promises to earn
	work int     // that the question will be
	id   uint64
}

// setSearch is one search for something cheaper.
type setSearch struct {
	eval          *Evaluator
	consolidation consolidation
	budget        *Budget
	all           []*stateNode // candidates
	shared        []*stateNode // of them, those that commands may be about together
	refused       map[uint64]bool
	later         map[uint64]bool
	missed        []Shortfall  // by the number of binary digits of their size
	minEarnings   float64      // what a set must promise to earn
	maxLooks      int          // how many nodes may be looked at to put together sets further down
	unfinished    bool         // not all was asked
	asked         int          // sets
	rest          []*stateNode // of the set asked about last, if it is to be followed up in the next pass
	best          Command
	found         bool
	withOthers    map[*stateNode]bool // nodes that were asked about last: whether with others
}

// findCheaper returns the command that makes pods run for less, if the search finds one. Sets of nodes are put together
// with the simulator, which is cheap, and the packer is asked about few of them, those that promise most first: what
// can go without replacement and the nodes that waste most, then sets further down, then single nodes. A set that was
// answered with no is not asked about again while nothing has changed that the answer depends on, and a search that ran
// out of questions goes on in the next pass.
func (ps *pass) findCheaper(m *Memory) (Command, bool) {
	if ps.state.rules.steps == 0 {
		return Command{}, false
	}
	all := ps.consolidationCandidates()
	if len(all) > 0 && !slices.ContainsFunc(all, func(n *stateNode) bool {
		return ps.budget.Left(n.pool.Name,
			v1.DisruptionUnderutilized) > 0
	}) {
		ps.budget.limitSet(all, v1.DisruptionUnderutilized)
		return Command{}, false // what was answered before stays answered
	}
	if ps.eval.inputs = ps.digestInputs(all); m.Search.World != ps.eval.inputs {
		m.Search = SearchState{World: ps.eval.inputs, Later: mergeLists(m.Search.Later, m.Search.Sets)}
	}
	if m.Search.Done {
		ps.candidates.recallReasons(all, m.Search.Kept)
		return Command{}, false
	}
	ps.eval.sortByWaste(all)
	s := &setSearch{eval: ps.eval, consolidation: ps.consolidation, budget: ps.budget, all: all,
		shared: ps.candidates.mayShare(all), refused: map[uint64]bool{}, later: map[uint64]bool{},
		missed: slices.Clone(m.Search.Missed), withOthers: map[*stateNode]bool{},
		maxLooks:    ps.state.rules.steps * looksPerQuestion,
		minEarnings: ps.state.totalPrice() * minSavingsShare * ps.state.rules.payback.Hours()}
	for _, id := range m.Search.Sets {
		s.refused[id] = true
	}
	for _, id := range m.Search.Later {
		s.later[id] = true
	}
	s.resumeSet(m.Search.Rest)
	for _, ask := range []func(){func() { s.evaluateSets(s.firstSets()) }, func() { s.askWindows(&m.Search.Window) },
		func() { s.evaluateSets(s.singleNodeSets()) }} {
		if !s.unfinished {
			ask()
		}
		if s.found {
			m.Search = SearchState{}
			s.dropRoomOfSets()
			return s.best, true
		}
	}
	m.Search.Rest = namesOf(s.rest)
	if m.Search.Done = !s.unfinished; m.Search.Done {
		m.Search.Sets, m.Search.Later, m.Search.Missed, m.Search.Window, m.Search.Kept = nil, nil, nil, SearchWindow{},
			ps.candidates.rememberedReasons(all)
	} else {
		m.Search.Missed, m.Search.Sets = s.missed, mergeLists(slices.Collect(maps.Keys(s.refused)), nil)
	}
	return Command{}, false
}

// mergeLists returns both lists in one, sorted, and not longer than maxRemembered.
func mergeLists(a, b []uint64) []uint64 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), maxRemembered)]
}

// evaluateSets evaluates the sets, those first that promise most, as long as one may be better than what was found.
func (s *setSearch) evaluateSets(sets []candidateSet) {
	rank := func(x candidateSet) int {
		if s.later[x.id] {
			return 1
		}
		return 0
	}
	for i := range sets {
		sets[i].id = digestOf(sets[i].set)
	}
	slices.SortStableFunc(sets, func(a, b candidateSet) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)),
			cmp.Compare(b.usd, a.usd))
	})
	for _, x := range sets {
		switch {
		case x.usd < s.minEarnings || s.refused[x.id] || s.fallsShort(x) ||
			s.found && x.usd <= s.eval.payback.netEarningsUSD(s.best):
			continue
		case !s.mayEvaluate(x):
			s.unfinished = true
			return
		}
		s.refused[x.id] = true
		if s.evaluateOne(x, false); len(s.rest) > 0 {
			return
		}
	}
}

// evaluateOne evaluates one set and keeps the command that earns most.
func (s *setSearch) evaluateOne(x candidateSet, patient bool) {
	s.asked++
	got := s.consolidation.evaluateSet(x.set, patient)
	for _, n := range x.set {
		s.withOthers[n] = len(x.set) > 1
	}
	if s.rest = got.rest; len(s.rest) > 0 {
		s.unfinished = true
	}
	s.recordShortfall(x, got.earnsUSD)
	if got.ok && (!s.found || s.eval.payback.netEarningsUSD(got.Command) > s.eval.payback.netEarningsUSD(s.best)) {
		s.best, s.found = got.Command, true
	}
}

// dropRoomOfSets drops the reason of nodes whose pods had no room when others went as well: those others may have it,
// and a search that has found something has not asked about each node alone.
func (s *setSearch) dropRoomOfSets() {
	for n, several := range s.withOthers {
		if several && n.notConsolidated.reason == IneligiblePodsUnschedulable {
			n.reviewConsolidation(refusal{})
		}
	}
}

// fallsShort reports whether sets of about that size have earned less than estimated by more than the set promises.
func (s *setSearch) fallsShort(x candidateSet) bool {
	i := bits.Len(uint(len(x.set)))
	return len(x.set) >= minMissedNodes && i < len(s.missed) && s.missed[i].Sets >= minMissed &&
		x.usd < s.missed[i].Least
}

// recordShortfall records by how much a set earns less than was estimated, if the packer said what it earns.
func (s *setSearch) recordShortfall(x candidateSet, earns float64) {
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

// digestOf names the set.
func digestOf(set []*stateNode) uint64 {
	h := fnv.New64a()
	for _, name := range namesOf(set) {
		h.Write([]byte(name + ","))
	}
	return h.Sum64()
}

// firstSets returns what can go without replacement, and the nodes that waste most.
func (s *setSearch) firstSets() []candidateSet {
	out := s.halveSet(s.budget.limitSet(s.shared, v1.DisruptionUnderutilized))
	if set := s.greedySet(s.shared, false); len(set) > 0 {
		// answered without the packer
		out = append(out, candidateSet{set: set, usd: math.Inf(1), work: s.eval.meter.questionWork(podsOf(set), 0)})
	}
	return out
}

// halveSet returns the set, its better half, and so on, as far as they promise something and are not more work than two
// passes may do.
func (s *setSearch) halveSet(set []*stateNode) (out []candidateSet) {
	for size := len(set); size > 1; size /= 2 {
		usd, left := s.eval.simulateSavings(set[:size])
		work := s.eval.meter.questionWork(podsOf(set[:size]), len(left))
		if usd > 0 && work <= 2*s.eval.meter.workLimit() {
			out = append(out, candidateSet{set: set[:size], usd: usd, work: work})
		}
	}
	return out
}

// singleNodeSets returns the nodes that promise to earn something when they alone go, and records on the others why
// they do not.
func (s *setSearch) singleNodeSets() (out []candidateSet) {
	for _, n := range s.all {
		if len(s.budget.limitSet([]*stateNode{n}, v1.DisruptionUnderutilized)) == 0 {
			continue
		}
		usd, left := s.eval.simulateSavings([]*stateNode{n})
		i := slices.IndexFunc(left, func(p *cluster.Pod) bool {
			return math.IsInf(s.eval.minCost(s.eval.consolidationSimulator(), p), 1)
		})
		switch {
		case usd > 0 && usd < s.minEarnings:
			n.presumeNotConsolidated(refusal{IneligibleSmallSavings,
				"its pods could run for less, but for less than a two-thousandth of what all nodes cost"})
		case usd > 0:
			out = append(out, candidateSet{set: []*stateNode{n}, usd: usd,
				work: s.eval.meter.questionWork(len(n.moving), len(left))})
		case i >= 0:
			n.presumeNotConsolidated(refusal{IneligiblePodsUnschedulable,
				s.eval.state.describeNoRoom(left[i].Key(), "no pool launches what it needs")})
		default:
			n.presumeNotConsolidated(refusal{IneligiblePayback,
				"what its pods need costs as much as it does, or nearly so"})
		}
	}
	return out
}

// greedySet puts together the nodes that earn something when they go, those first that earn most for each pod moved,
// within the budgets. With replace, pods without room elsewhere cost what the best nodes cost for them; else the nodes
// of such pods stay.
func (s *setSearch) greedySet(all []*stateNode, replace bool) []*stateNode {
	b := s.eval.consolidationSimulator()
	defer b.UndoTo(b.Mark())
	used := map[string]int{}
	earnings := map[*stateNode]float64{}
	var out []*stateNode
	for _, n := range all {
		node := b.Node(n.Node.Name)
		if node == nil || node.Bound() > 0 {
			continue // pods would move twice
		}
		if used[n.pool.Name] >= s.budget.Left(n.pool.Name, v1.DisruptionUnderutilized) {
			n.presumeNotConsolidated(s.budget.refusal(n.pool.Name, v1.DisruptionUnderutilized))
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
		earnings[n] = earns
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b *stateNode) int {
		return cmp.Or(cmp.Compare(earnings[b]/b.cost, earnings[a]/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}
