package disrupt

import (
	"cmp"
	"hash/fnv"
	"maps"
	"math"
	"math/bits"
	"slices"
	"strings"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/cluster"
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

// idea is a set of nodes that may be worth a question.
type idea struct {
	set  []*node
	usd  float64 // what it promises to earn
	work int     // that the question will be
	id   uint64
}

// search is one search for something cheaper.
type search struct {
	v      *view
	all    []*node // candidates
	no     map[uint64]bool
	later  map[uint64]bool
	missed []Missed // by the number of binary digits of their size
	least  float64  // what a set must promise to earn
	looks  int      // how many nodes may be looked at to put together sets further down
	more   bool     // not all was asked
	asked  int      // sets
	rest   []*node  // of the set asked about last, if it is to be followed up in the next pass
	best   Command
	found  bool
}

// findCheaper finds nodes whose pods can run for less (spec core.md §6.4 says what the in-cluster original does: prefixes of one order
// up to 100 nodes, one replacement at most). Sets of nodes that promise something are put together by playing the scheduler, which is
// cheap, and the packer is asked about few of them, those that promise most first: what can go without replacement and those that waste
// most; where that comes to nothing sets further down; and then single nodes. What was answered with no is not asked again while nothing
// has changed that the answer depends on, and a search that ran out of questions goes on in the next pass.
func (v *view) findCheaper(m *Memory) (Command, bool) {
	if v.rules().steps == 0 {
		return Command{}, false
	}
	all := v.candidates()
	if len(all) > 0 && !slices.ContainsFunc(all, func(n *node) bool { return v.left[n.pool.Name][v1.DisruptionUnderutilized] > 0 }) {
		v.within(all, v1.DisruptionUnderutilized)
		return Command{}, false // what was answered before stays answered
	}
	if v.world = v.digest(all); m.Asked.World != v.world {
		m.Asked = Asked{World: v.world, Later: merged(m.Asked.Later, m.Asked.Sets)}
	}
	if m.Asked.Done {
		v.recall(all, m.Asked.Kept)
		return Command{}, false
	}
	v.weigh(all)
	s := &search{v: v, all: all, no: map[uint64]bool{}, later: map[uint64]bool{}, missed: slices.Clone(m.Asked.Missed), looks: v.rules().steps * stepLooks, least: v.total() * leastPart * v.rules().payback.Hours()}
	for _, id := range m.Asked.Sets {
		s.no[id] = true
	}
	for _, id := range m.Asked.Later {
		s.later[id] = true
	}
	s.resume(m.Asked.Rest)
	for _, ask := range []func(){func() { s.ask(s.first()) }, func() { s.askWindows(&m.Asked.Window) }, func() { s.ask(s.singles()) }} {
		if !s.more {
			ask()
		}
		if s.found {
			m.Asked = Asked{}
			return s.best, true
		}
	}
	m.Asked.Rest = namesOf(s.rest)
	if m.Asked.Done = !s.more; m.Asked.Done {
		m.Asked.Sets, m.Asked.Later, m.Asked.Missed, m.Asked.Window, m.Asked.Kept = nil, nil, nil, Window{}, v.reasons(all)
	} else {
		m.Asked.Missed, m.Asked.Sets = s.missed, merged(slices.Collect(maps.Keys(s.no)), nil)
	}
	return Command{}, false
}

// merged is both lists in one, sorted, and not too long.
func merged(a, b []uint64) []uint64 {
	out := slices.Concat(a, b)
	slices.Sort(out)
	out = slices.Compact(out)
	return out[:min(len(out), mostAsked)]
}

// ask puts the questions, those first that promise most, as long as one may be better than what was found.
func (s *search) ask(ideas []idea) {
	rank := func(x idea) int {
		if s.later[x.id] {
			return 1
		}
		return 0
	}
	for i := range ideas {
		ideas[i].id = digestOf(ideas[i].set)
	}
	slices.SortStableFunc(ideas, func(a, b idea) int { return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(b.usd, a.usd)) })
	for _, x := range ideas {
		switch {
		case x.usd < s.least || s.no[x.id] || s.idle(x) || s.found && x.usd*s.likely() <= s.v.earns(s.best):
			continue
		case !s.begins(x):
			s.more = true
			return
		}
		s.no[x.id] = true
		if s.question(x); len(s.rest) > 0 {
			return
		}
	}
}

// question puts one.
func (s *search) question(x idea) {
	s.asked++
	c, ok := s.v.worthIt(x.set)
	if s.rest = s.v.rest; len(s.rest) > 0 {
		s.more = true
	}
	s.learn(x, s.v.yield)
	if ok && (!s.found || s.v.earns(c) > s.v.earns(s.best)) {
		s.best, s.found = c, true
	}
}

// likely is the part of its promise for which a set is asked about.
func (s *search) likely() float64 {
	if s.v.asked < fewAsked {
		return 1
	}
	return likely
}

// idle reports whether sets of about that size have fallen short by more than the set promises.
func (s *search) idle(x idea) bool {
	i := bits.Len(uint(len(x.set)))
	return len(x.set) >= fewNodes && i < len(s.missed) && s.missed[i].Sets >= fewMissed && x.usd < s.missed[i].Least
}

// learn notes by how much a set that was asked about fell short of its promise, if the packer said what it would earn.
func (s *search) learn(x idea, earns float64) {
	if math.IsInf(x.usd, 1) || math.IsNaN(earns) {
		return
	}
	i := bits.Len(uint(len(x.set)))
	for len(s.missed) <= i {
		s.missed = append(s.missed, Missed{})
	}
	m := &s.missed[i]
	if by := x.usd - earns; m.Sets == 0 || by < m.Least {
		m.Least = by
	}
	m.Sets++
}

// total is what all nodes cost, USD per hour.
func (v *view) total() (usd float64) {
	for _, n := range v.nodes {
		usd += n.price
	}
	return usd
}

// digestOf names the set.
func digestOf(set []*node) uint64 {
	h := fnv.New64a()
	for _, name := range namesOf(set) {
		h.Write([]byte(name + ","))
	}
	return h.Sum64()
}

// first is what can go without replacement, and the nodes that waste most.
func (s *search) first() []idea {
	out := s.halves(s.v.within(s.all, v1.DisruptionUnderutilized))
	if set := s.v.promising(s.all, false); len(set) > 0 {
		out = append(out, idea{set: set, usd: math.Inf(1), work: s.v.workOf(podsOf(set), 0)}) // answered without the packer
	}
	return out
}

// halves are the set, its better half, and so on, as far as they promise something and are not more than two passes may do.
func (s *search) halves(set []*node) (out []idea) {
	for size := len(set); size > 1; size /= 2 {
		usd, left := s.v.played(set[:size])
		if work := s.v.workOf(podsOf(set[:size]), len(left)); usd > 0 && work <= 2*s.v.mostWork() {
			out = append(out, idea{set: set[:size], usd: usd, work: work})
		}
	}
	return out
}

// singles are the nodes that promise to earn something when they alone go.
func (s *search) singles() (out []idea) {
	v := s.v
	for _, n := range s.all {
		if len(v.within([]*node{n}, v1.DisruptionUnderutilized)) == 0 {
			continue
		}
		usd, left := v.played([]*node{n})
		i := slices.IndexFunc(left, func(p *cluster.Pod) bool { return v.floor(v.table().sort(p)) >= beyond })
		switch {
		case usd > 0 && usd < s.least:
			n.kept = cmp.Or(n.kept, refuse{"small", "its pods could run for less, but for less than a two-thousandth of what all nodes cost"})
		case usd > 0:
			out = append(out, idea{set: []*node{n}, usd: usd, work: v.workOf(len(n.moving), len(left))})
		case i >= 0:
			n.kept = cmp.Or(n.kept, refuse{"stuck", "pod " + left[i].Key() + " has no room elsewhere, and no pool launches what it needs"})
		default:
			n.kept = cmp.Or(n.kept, refuse{"payback", "what its pods need costs as much as it does, or nearly so"})
		}
	}
	return out
}

// hope is what the set may earn within the payback time when it goes.
func (v *view) hope(set []*node) float64 {
	usd, _ := v.played(set)
	return usd
}

// played is hope with the pods for which new nodes have to be made.
func (v *view) played(set []*node) (usd float64, left []*cluster.Pod) {
	b := v.table()
	defer b.back(len(b.steps))
	left = b.run(v.cleared(b, set), nil)
	return v.gain(set, v.floors(b, left)), left
}

// gain is what it earns within the payback time to run the pods of the nodes for so much instead, USD.
func (v *view) gain(set []*node, after float64) float64 {
	before, moves := 0.0, 0.0
	for _, n := range set {
		before += n.price
		moves += n.cost - 1
	}
	return (before-after)*v.rules().payback.Hours() - moves*v.rules().moveUSD - after*v.overlap(set)
}

// floors is the least that the pods cost on new nodes, USD per hour, as those share them best with all others.
func (v *view) floors(b *board, pods []*cluster.Pod) (usd float64) {
	for _, p := range pods {
		usd += v.floor(b.sort(p)) * air
	}
	return usd
}

// promising puts together the nodes that earn something when they go, those first that earn most for each pod moved, within the
// budgets. Pods without room elsewhere cost what the best nodes cost for them; unless that is wanted their nodes stay.
func (v *view) promising(all []*node, replace bool) []*node {
	b := v.table()
	defer b.back(len(b.steps))
	used := map[string]int{}
	worth := map[*node]float64{}
	var out []*node
	for _, n := range all {
		x := b.byName[n.Node.Name]
		if x == nil || x.taken > 0 {
			continue // pods would move twice
		}
		if used[n.pool.Name] >= v.left[n.pool.Name][v1.DisruptionUnderutilized] {
			n.kept = cmp.Or(n.kept, refuse{"budget", "the budgets of its NodePool let no more nodes go now for reason " + string(v1.DisruptionUnderutilized)})
			continue
		}
		before := len(b.steps)
		b.leave(n)
		earns, ok := v.promise(b, n, b.move(n.moving, nil, replace), replace)
		if !ok {
			b.back(before)
			continue
		}
		used[n.pool.Name]++
		worth[n] = earns
		out = append(out, n)
	}
	slices.SortStableFunc(out, func(a, b *node) int {
		return cmp.Or(cmp.Compare(worth[b]/b.cost, worth[a]/a.cost), strings.Compare(a.Claim.Name, b.Claim.Name))
	})
	return out
}

// promise is what the node may earn within the payback time when pods without room elsewhere get new nodes.
func (v *view) promise(b *board, n *node, left []*cluster.Pod, replace bool) (usd float64, ok bool) {
	if len(left) > 0 && !replace {
		return 0, false
	}
	usd = v.gain([]*node{n}, v.floors(b, left))
	return usd, usd > 0
}

// beyond all prices, USD per hour.
const beyond = 1e9

// floor is the least that a pod of the sort costs on new nodes, USD per hour; beyond all prices where nobody sells what it needs.
func (v *view) floor(k *sort) float64 {
	if !k.priced {
		k.floor = v.worthOf(k.pod)
		k.priced = true
	}
	return k.floor
}

// worthOf is what new nodes cost at least for each pod like that among all that move; beyond all prices where nobody sells what it needs.
func (v *view) worthOf(p *cluster.Pod) float64 {
	if v.worth == nil {
		v.worth = v.shop().Worth(v.s)
	}
	if usd, ok := v.worth[p.Key()]; ok {
		return usd
	}
	usd, _ := v.shop().Floor(*p)
	return usd
}

// leaving are the names of nodes that something takes away already.
func (v *view) leaving() map[string]bool {
	out := map[string]bool{}
	for _, n := range v.nodes {
		if n.taken && n.Node != nil {
			out[n.Node.Name] = true
		}
	}
	return out
}
