package whatif

import (
	"cmp"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
)

// family are edits of one place, from the smallest to the widest. What none of them could do, the widest cannot.
type family struct {
	pool  string // the NodePool that they are about, empty where it matters for all
	place string // families of one place: where one of them helps, those behind it are not asked about
	count int
	at    func(i int) Edit
	order int // among all families
	// smaller edits than the widest, the best first, once it is known where that leads
	narrow func(l landing) []Edit
}

// step is the edit i of the family.
func (f family) step(i int) Edit {
	e := f.at(i)
	e.order = f.order
	return e
}

// widest is the edit that does most.
func (f family) widest() Edit { return f.step(f.count - 1) }

// single is a family of one edit.
func single(pool string, e Edit) family {
	return family{pool: pool, count: 1, at: func(int) Edit { return e }}
}

// world is a snapshot in which edits are made and taken back.
type world struct {
	s    cluster.Snapshot
	own  []int // pods that edits may change
	cost int   // work of one question about it
}

// newWorld is the world of the snapshot, whose pods may be changed, in which edits may change the pods of these names.
func newWorld(s cluster.Snapshot, of ...pods) *world {
	w := &world{s: s, cost: 400 + 3*len(s.Nodes)}
	for i := range s.Pods {
		p := &s.Pods[i]
		if p.NodeName == "" {
			w.cost += 4
		}
		if slices.ContainsFunc(of, func(x pods) bool { return x.has(p) }) {
			w.own = append(w.own, i)
		}
	}
	return w
}

// with asks about the world with the edits made.
func (w *world) with(edits []Edit, answer func(cluster.Snapshot) (Outcome, bool)) (Outcome, bool) {
	s := withOwnLists(w.s)
	kept := make([]cluster.Pod, len(w.own))
	for i, at := range w.own {
		kept[i] = s.Pods[at]
	}
	makeAll(&s, edits)
	out, ok := answer(s)
	for i, at := range w.own {
		w.s.Pods[at] = kept[i]
	}
	return out, ok
}

// question is one answer that is to change.
type question struct {
	full   *world
	few    *world // with fewer pods that wait, where what helps nobody does not help; nil to ask about all at once
	answer func(s cluster.Snapshot) (Outcome, bool)
	accept func(e Edit) bool // whether the API server would take the edit
	left   int               // work
	asked  int
	short  bool // a question was left out for lack of work
}

func newQuestion(full *world, most Limits, answer func(s cluster.Snapshot) (Outcome, bool)) *question {
	q := &question{full: full, answer: answer, accept: most.Accept, left: cmp.Or(most.Work, DefaultWork)}
	if q.accept == nil {
		q.accept = func(Edit) bool { return true }
	}
	return q
}

// mayHelp reports whether the edits change the answer as far as the fewest pods tell.
func (q *question) mayHelp(edits []Edit) bool {
	_, ok := q.askIn([]*world{cmp.Or(q.few, q.full)}, edits)
	return ok
}

// ask reports what the edits bring, and whether they change the answer. It says no where no work is left.
func (q *question) ask(edits ...Edit) (Outcome, bool) {
	if q.few == nil {
		return q.askIn([]*world{q.full}, edits)
	}
	return q.askIn([]*world{q.few, q.full}, edits)
}

func (q *question) askIn(worlds []*world, edits []Edit) (out Outcome, ok bool) {
	for _, w := range worlds {
		if q.left < w.cost {
			q.short = true
			return Outcome{}, false
		}
		q.left, q.asked = q.left-w.cost, q.asked+1
		if out, ok = w.with(edits, q.answer); !ok {
			return out, false
		}
	}
	return out, ok
}

// search looks for single edits, and where there are none for pairs.
func (q *question) search(all []family) (a Answer) {
	all = slices.DeleteFunc(all, func(f family) bool {
		return f.count == 0 || !q.accept(f.widest()) && f.narrow == nil
	})
	for i := range all {
		all[i].order = i
	}
	helped := map[string]bool{}
	before := q.left
	for _, f := range all {
		if q.short = false; f.place != "" && helped[f.place] {
			continue
		}
		c, ok := q.smallest(f)
		switch {
		case ok:
			a.Changes, helped[f.place] = append(a.Changes, c), true
		case q.short:
			a.Unasked++
		default:
			a.Tried = append(a.Tried, f.widest())
		}
	}
	if len(a.Changes) == 0 {
		q.short = false
		a.Changes = q.pairs(all)
		if q.short {
			a.Unasked++
		}
	}
	slices.SortStableFunc(a.Changes, compareChanges)
	a.Questions, a.Work = q.asked, before-q.left
	return a
}

// compareChanges puts the cheapest first, of equal ones that which touches the fewest.
func compareChanges(a, b Change) int {
	return cmp.Or(cmp.Compare(len(a.Edits), len(b.Edits)), cmp.Compare(a.AddsUSD, b.AddsUSD),
		cmp.Compare(len(a.Others), len(b.Others)), strings.Compare(a.String(), b.String()))
}

// smallest is the smallest edit of the family that changes the answer beside the others.
func (q *question) smallest(f family, beside ...Edit) (c Change, ok bool) {
	try := func(e Edit) (Change, bool) {
		edits := append(slices.Clone(beside), e)
		out, ok := q.ask(edits...)
		return Change{Edits: edits, Outcome: out}, ok
	}
	c, ok = try(f.widest())
	if !ok {
		return c, false
	}
	if f.narrow != nil {
		for _, e := range f.narrow(c.landing) {
			if e.order = f.order; !q.accept(e) {
				continue
			}
			if small, ok := try(e); ok {
				return small, true
			}
		}
		return c, q.accept(f.widest())
	}
	below, step := -1, 1 // the largest step that is known to be too small
	for at := 0; at < f.count-1; at, step = below+step, step*2 {
		small, ok := try(f.step(at))
		if ok {
			return q.bisect(f, try, below, at, small), true
		}
		below = at
	}
	return q.bisect(f, try, below, f.count-1, c), true
}

// bisect finds the first step of the family that changes the answer, above one that does not and up to one that does.
func (q *question) bisect(f family, try func(Edit) (Change, bool), below, above int, c Change) Change {
	for above-below > 1 {
		middle := (below + above) / 2
		if small, ok := try(f.step(middle)); ok {
			above, c = middle, small
		} else {
			below = middle
		}
	}
	return c
}

// mostPairs bounds the pairs that are told.
const mostPairs = 3

// pairs looks for two edits that change the answer together. A node is of one NodePool, so two edits help of which none
// is about another one than its partner.
func (q *question) pairs(all []family) (out []Change) {
	pools := []string{}
	for _, f := range all {
		if f.pool != "" && !slices.Contains(pools, f.pool) {
			pools = append(pools, f.pool)
		}
	}
	if len(pools) == 0 {
		pools = []string{""}
	}
	for _, pool := range pools {
		some := slices.DeleteFunc(slices.Clone(all), func(f family) bool { return f.pool != "" && f.pool != pool })
		for _, p := range q.partners(some) {
			if len(out) == mostPairs {
				return out
			}
			c, ok := q.smallest(some[p[0]], some[p[1]].widest())
			if ok {
				c, ok = q.smallest(some[p[1]], c.Edits[1])
			}
			if ok && !slices.ContainsFunc(out, func(x Change) bool { return x.String() == c.String() }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// partners are pairs of families worth a question. A family without which all others together do not help is in each.
func (q *question) partners(some []family) (out [][2]int) {
	without := func(i int) (edits []Edit) {
		for j, f := range some {
			if j != i {
				edits = append(edits, f.widest())
			}
		}
		return edits
	}
	if !q.mayHelp(without(-1)) {
		return nil
	}
	var needed []int
	for i := range some {
		if !q.mayHelp(without(i)) {
			needed = append(needed, i)
		}
		if len(needed) > 2 || q.short {
			return nil
		}
	}
	for i := range some {
		for j := i + 1; j < len(some); j++ {
			pair := []int{i, j}
			if !slices.ContainsFunc(needed, func(n int) bool { return !slices.Contains(pair, n) }) {
				out = append(out, [2]int{i, j})
			}
		}
	}
	return out
}
