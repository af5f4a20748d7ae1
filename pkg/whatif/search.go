package whatif

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// family are edits of one place, from the smallest to the widest. What one of them does the widest does too, unless
// others take what it gives.
type family struct {
	pool  string // the NodePool that they are about, empty where it matters for all
	place string // families of one place: where one of them helps, those behind it are not asked about
	count int
	at    func(i int) Edit
	order int // among all families
	// they change which nodes are made, so that others may take what one of them gives
	launches bool
	// a smaller edit than the widest, if there is one, once it is known where that leads
	narrow func(l landing) (Edit, bool)
}

// step is the edit i of the family.
func (f family) step(i int) Edit {
	e := f.at(i)
	e.order = f.order
	return e
}

// widest is the edit that does most.
func (f family) widest() Edit { return f.step(f.count - 1) }

// inPlace are the families as those of one place.
func inPlace(place string, all ...family) []family {
	for i := range all {
		all[i].place = place
	}
	return all
}

// single is a family of one edit, which there is where all of when hold.
func single(pool string, e Edit, when ...bool) family {
	f := family{pool: pool, count: 1, at: func(int) Edit { return e }}
	if slices.Contains(when, false) {
		f.count = 0
	}
	return f
}

// inSteps is a family of edits that change a number by one step each, in one direction.
func inSteps(pool string, was, step, count int64, to func(n int64) Edit) family {
	return family{pool: pool, count: int(max(0, count)), at: func(i int) Edit { return to(was + int64(i+1)*step) }}
}

// question is one answer that is to change.
type question struct {
	in          cluster.Snapshot  // with the answer
	sure        *cluster.Snapshot // in which a change has to help too, where in has fewer pods and less search
	answer      func(s cluster.Snapshot) (ChangeEffect, bool)
	takes       func(p cluster.Pool) bool // whether the API server does
	rivals      func(f family) bool       // whether others may take what its edits give
	helped      map[string]bool           // places that an edit was found of
	short       bool                      // a question was left out for lack of work
	left, asked int                       // work, and questions
}

func newQuestion(s cluster.Snapshot, most Limits, rivals func(f family) bool,
	answer func(s cluster.Snapshot) (ChangeEffect, bool)) *question {
	return &question{in: s, answer: answer, takes: most.Accept, rivals: rivals,
		helped: map[string]bool{}, left: cmp.Or(most.Work, DefaultWork)}
}

// accept reports whether the API server would take the edit.
func (q *question) accept(e Edit) bool {
	if q.takes == nil || e.Kind != "NodePool" {
		return true
	}
	p, _ := Change{Edits: []Edit{e}}.Apply(q.in).PoolOf(e.Name)
	return q.takes(p)
}

// typesOfWork is the number of instance types of a NodePool that are as much work as 1. One CPU takes 10 ms for a
// question with 5 NodePools of 1,219 types, 34 ms with 20 and half a second with 64. These are 596, 1,053 and 2,394,
// which is less than it is, so that 10 NodePools are asked about whole, in two seconds. Half of it asks about half as
// many; double of it takes 20 seconds with 64.
const typesOfWork = 40

// WorkOf returns the work of a question about the snapshot.
func WorkOf(s cluster.Snapshot) int {
	waiting := lists.Count(s.Pods, func(p cluster.Pod) bool { return p.NodeName == "" })
	n := 400 + 3*len(s.Nodes) + 4*waiting + len(s.Pools)*len(s.Catalog.Types)/typesOfWork
	if s.Rules.PackingIterations == 0 {
		n += 40 * min(waiting, mostSearched)
	}
	return n
}

// mayHelp reports whether the edits change the answer as far as the fewest pods tell.
func (q *question) mayHelp(edits []Edit) bool {
	_, ok := q.askAbout(q.in, edits)
	return ok
}

// askAbout reports what the edits bring in the snapshot, and whether they change the answer: no where no work is left.
func (q *question) askAbout(s cluster.Snapshot, edits []Edit) (out ChangeEffect, ok bool) {
	work := WorkOf(s)
	if q.left < work {
		q.short = true
		return out, false
	}
	q.left, q.asked = q.left-work, q.asked+1
	return q.answer(Change{Edits: edits}.Apply(s))
}

// search looks for single edits, and where there are none for pairs.
func (q *question) search(all []family) (a Answer) {
	all = slices.DeleteFunc(all, func(f family) bool {
		return f.count == 0 || !q.accept(f.widest()) && f.narrow == nil
	})
	for i := range all {
		all[i].order = i
	}
	before, left := q.left, all
	for round, find := range []func(f family, beside ...Edit) (Change, bool){q.smallest, q.firstStep} {
		var failed []family
		for _, f := range left {
			if q.short = false; round == 0 && q.helped[f.place] {
				continue
			}
			switch c, ok := find(f); {
			case ok:
				a.Changes, q.helped[f.place] = append(a.Changes, c), f.place != ""
			case q.short:
				a.Unasked++
			default:
				failed = append(failed, f)
			}
		}
		left = failed
	}
	a.Tried = lists.Of(left, family.widest)
	if q.short = false; len(a.Changes) == 0 {
		a.Changes = q.pairs(all)
	}
	if q.short {
		a.Unasked++
	}
	slices.SortStableFunc(a.Changes, compareChanges)
	a.Questions, a.Work = q.asked, before-q.left
	return a
}

// compareChanges puts first what leaves the fewest others without a node, then the cheapest, of equal ones that which
// touches the fewest.
func compareChanges(a, b Change) int {
	const part = 1e6 // of a USD: sums of the same prices differ in their last digits
	return cmp.Or(cmp.Compare(len(a.Edits), len(b.Edits)), cmp.Compare(len(a.Displaced), len(b.Displaced)),
		cmp.Compare(math.Round(a.AddsUSD*part), math.Round(b.AddsUSD*part)),
		cmp.Compare(len(a.Others), len(b.Others)), strings.Compare(a.String(), b.String()))
}

// smallest is the smallest edit of the family that changes the answer beside the others.
func (q *question) smallest(f family, beside ...Edit) (c Change, ok bool) {
	c, ok = q.smallestIn(q.in, f, beside)
	if !ok || q.sure == nil {
		return c, ok
	}
	if out, sure := q.askAbout(*q.sure, c.Edits); sure {
		c.ChangeEffect = out
		return c, true
	}
	return q.smallestIn(*q.sure, f, beside)
}

func (q *question) smallestIn(in cluster.Snapshot, f family, beside []Edit) (c Change, ok bool) {
	try := func(e Edit) (Change, bool) {
		edits := append(slices.Clone(beside), e)
		out, ok := q.askAbout(in, edits)
		return Change{Edits: edits, ChangeEffect: out}, ok
	}
	c, ok = try(f.widest())
	if !ok {
		return c, false
	}
	if f.narrow != nil && c.landing != nil {
		if e, is := f.narrow(c.landing); is && q.accept(e) {
			e.order = f.order
			if small, ok := try(e); ok {
				return small, true
			}
		}
	}
	below, above := -1, f.count-1 // steps that are known to be too small, and large enough
	for reach := 1; above-below > 1; reach *= 2 {
		at := min(below+reach, (below+above)/2)
		if small, ok := try(f.step(at)); ok {
			above, c = at, small
		} else {
			below = at
		}
	}
	return c, q.accept(f.widest())
}

// firstSteps caps the steps that are asked about of a family whose widest edit gives what others take.
const firstSteps = 4

// firstStep is the first step that changes the answer of a family whose widest edit does not. There is one where others
// take what that gives: with all types to choose from, cheaper nodes for them may use up a limit.
func (q *question) firstStep(f family, _ ...Edit) (c Change, ok bool) {
	if q.helped[f.place] || !q.rivals(f) || f.count == 1 || q.sure != nil && !q.mayHelp([]Edit{f.widest()}) {
		return Change{}, false
	}
	for n := 1; n < f.count && n <= firstSteps && !ok; n++ {
		few := f
		few.count = n
		c, ok = q.smallest(few)
	}
	return c, ok
}

// mostSearched caps the pods that wait and make a search longer: of more, the search is no deeper.
const mostSearched = 200

// mostPairs bounds the pairs that are told. Each costs two searches for a smallest edit: double of it takes the work of
// a large cluster, and with half of it a choice between two objects may be missing.
const mostPairs = 3

// pairs looks for two edits that change the answer together. A node is of one NodePool, so two edits help of which none
// is about another one than its partner.
func (q *question) pairs(all []family) (out []Change) {
	for _, pool := range q.in.Pools {
		some := slices.DeleteFunc(slices.Clone(all), func(f family) bool { return f.pool != "" && f.pool != pool.Name })
		for _, p := range q.partners(some) {
			if len(out) == mostPairs {
				return out
			}
			c, ok := q.smallest(some[p[0]], some[p[1]].widest())
			if ok {
				c, ok = q.smallest(some[p[1]], c.Edits[1])
			}
			if half, alone := q.helpfulHalf(c, ok); alone {
				return []Change{half}
			}
			if ok && !slices.ContainsFunc(out, func(x Change) bool { return x.String() == c.String() }) {
				out = append(out, c)
			}
		}
	}
	return out
}

// helpfulHalf is the edit of a pair that helps, if it does, which does so alone: a quick question misses some.
func (q *question) helpfulHalf(pair Change, helps bool) (half Change, alone bool) {
	for i := 0; helps && q.sure != nil && i < len(pair.Edits) && !alone; i++ {
		half.Edits = pair.Edits[i : i+1]
		half.ChangeEffect, alone = q.askAbout(*q.sure, half.Edits)
	}
	return half, alone
}

// partners are pairs of families worth a question. A family without which all others together do not help is in each.
func (q *question) partners(some []family) (out [][2]int) {
	all := lists.Of(some, family.widest)
	if !q.mayHelp(all) {
		return nil
	}
	var needed []int
	for i := range some {
		if !q.mayHelp(without(all, i)) {
			needed = append(needed, i)
		}
		if len(needed) > 2 || q.short {
			return nil
		}
	}
	for i := range some {
		for j := i + 1; j < len(some); j++ {
			if !slices.ContainsFunc(needed, func(n int) bool { return n != i && n != j }) {
				out = append(out, [2]int{i, j})
			}
		}
	}
	return out
}
