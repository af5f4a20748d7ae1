package faultisolation

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
)

// asideFor is the time that a part is left out before it is tried again.
const asideFor = 10 * time.Minute

// Decision holds the ways to take a decision.
type Decision[T any] struct {
	Take func(cluster.Snapshot) T
	// the same without what only makes it better, nil where there is no such
	Quick  func(cluster.Snapshot) T
	Claims bool // it is about NodeClaims that may go: the snapshot's Aside names those that it is to leave alone
	Tries  int  // how often it may be taken in search of what it fails about; what is left to find is for the next one
}

// Decided is a decision, and what it was taken without.
type Decided[T any] struct {
	Out    T
	Failed bool            // it fails whatever is left out: Out is the zero value
	Aside  []cluster.Aside // what the next decision is told as known
	Faults []plan.Fault    // what this one failed about; what was known before and left out untried is not among them
	Pods   []plan.Unplaced // that need a place and were left out, sorted
	Pools  []plan.Skip     // that were left out, sorted
}

// Decide takes the decision about the snapshot, without what is known to make it fail.
func Decide[T any](s cluster.Snapshot, known []cluster.Aside, d Decision[T]) Decided[T] {
	x := &search[T]{d: d, now: s.Now}
	if len(known) == 0 {
		var out T
		if x.failed = Catch(func() { out = d.Take(s) }); x.failed == nil {
			return Decided[T]{Out: out}
		}
	}
	x.inv, x.known = takeInventory(s, d.Claims), known
	x.isolateCulprits()
	return x.result()
}

// result returns the decision, the parts that it is taken without, and the pods and pools that these are of.
func (x *search[T]) result() Decided[T] {
	out := Decided[T]{Out: x.best, Failed: !x.works, Faults: x.faults}
	for _, a := range x.known {
		if x.now.Before(a.Until) { // also if it is not there now
			if x.cleared[a.Kind] {
				a.Until = x.now
			}
			out.Aside = append(out.Aside, a)
		}
	}
	for _, p := range x.found {
		out.Aside = append(out.Aside, p.Aside)
	}
	slices.SortFunc(out.Aside, func(a, b cluster.Aside) int { return strings.Compare(asideKey(a), asideKey(b)) })
	if x.works {
		out.Pods, out.Pools = unplacedBy(x.inv, out.Aside)
		return out
	}
	var all []cluster.Aside
	for _, p := range x.inv.byKey {
		p.Why = x.failed.Why
		all = append(all, p.Aside)
	}
	out.Pods, _ = unplacedBy(x.inv, all)
	return out
}

// mostInstead bounds the tries of one look for another explanation.
const mostInstead = 16

// search looks for the parts about which a decision fails.
type search[T any] struct {
	d     Decision[T]
	now   time.Time
	inv   *inventory
	known []cluster.Aside
	tries int

	fixed  []*part        // what is left out untried
	out    map[*part]bool // what is left out besides
	best   T              // the decision without both
	works  bool           // there is one
	failed *Panic         // the last
	found  []*part        // what stays out
	faults []plan.Fault

	cleared map[cluster.PartKind]bool // kinds of parts that were left out for what others are found to be at fault in

	failures int         // of parts of the group at hand
	second   func() bool // to be asked when a second part of a group fails; nil for nothing
	settled  bool        // and it has found what else fails
}

// isolateCulprits takes the decision without what is known, and without what is found besides.
func (x *search[T]) isolateCulprits() {
	x.out = map[*part]bool{}
	var again []*part
	for _, a := range x.known {
		p := x.inv.findPart(a)
		switch {
		case p == nil: // it is gone
		case x.now.Before(a.Until):
			p.Why, p.Until = a.Why, a.Until
			x.fixed = append(x.fixed, p)
		default:
			p.Why = a.Why
			again = append(again, p)
		}
	}
	x.leaveOut(again...)
	sift := x.readmitParts
	if x.failed != nil || !x.decidesOn() {
		if x.decidesQuickly() {
			return
		}
		for _, g := range x.inv.groups {
			x.leaveOut(g...)
		}
		if !x.decidesOn() {
			x.faults = []plan.Fault{{Why: x.failed.Why, Stack: x.failed.Stack}}
			return
		}
		sift = func(parts []*part) { x.bisect(parts, nil) }
	}
	for i := range x.inv.groups {
		x.takeIn(i, sift)
	}
	sift(slices.DeleteFunc(again, func(p *part) bool { return p.For == "" })) // of no group
}

// decidesQuickly takes the decision without what only makes it better, about all that is not left out untried. Where
// that works, no part of the snapshot is at fault.
func (x *search[T]) decidesQuickly() bool {
	if x.d.Quick == nil {
		return false
	}
	why, out := x.failed, *new(T)
	if Catch(func() { out = x.d.Quick(x.inv.snapshotWithout(x.fixed)) }) != nil {
		return false
	}
	x.best, x.works, x.out = out, true, map[*part]bool{}
	x.faults = []plan.Fault{{Kind: cluster.SearchPart, Why: why.Why, Stack: why.Stack}}
	return true
}

// takeIn takes in what can be of one group. Where several of it fail, it may be a part of an earlier group that all of
// them need.
func (x *search[T]) takeIn(i int, sift func([]*part)) {
	parts := slices.DeleteFunc(x.candidateParts(i), func(p *part) bool { return !x.out[p] })
	before := len(x.found)
	x.failures, x.settled = 0, false
	x.second = func() bool {
		for j := range i {
			if x.blameInstead(x.candidateParts(j), parts) {
				return true
			}
		}
		return false
	}
	if len(parts) > 0 && parts[0].Kind == cluster.ClaimPart {
		x.singleOut(parts)
	} else {
		sift(parts)
	}
	x.second = nil
	if one := slices.Clone(x.found[before:]); !x.settled && len(one) == 1 && one[0].Kind == cluster.WaitingPods &&
		len(x.inv.s.Pools) > 1 {
		x.blameInstead(x.inv.poolParts(one[0].Name), one) // nodes of other pools may do
	}
}

// candidateParts are the parts of a group that are not left out anyhow.
func (x *search[T]) candidateParts(i int) []*part {
	return slices.DeleteFunc(slices.Clone(x.inv.groups[i]), func(p *part) bool { return slices.Contains(x.fixed, p) })
}

// blameInstead leaves out one of the parts in the place of the others, if that does, and reports whether it has.
func (x *search[T]) blameInstead(parts, others []*part) bool {
	was, most := *x, x.d.Tries
	x.out, x.found, x.faults = maps.Clone(x.out), slices.Clone(x.found), slices.Clone(x.faults)
	x.second, x.settled, x.d.Tries = nil, false, min(most, x.tries+mostInstead)
	ok := false
	if x.tries < x.d.Tries && len(parts) > 0 {
		x.leaveOut(parts...)
		if x.decidesOn(others...) {
			x.bisect(parts, nil)
			blamed := x.found[len(was.found):]
			ok = len(parts) > 1 && (len(blamed) == 0 || len(blamed) == 1 && x.now.Before(blamed[0].Until))
		}
	}
	if !ok {
		tries, failed := x.tries, x.failed
		*x = was
		x.tries, x.failed = tries, failed
		return false
	}
	x.found = slices.DeleteFunc(x.found, func(p *part) bool { return slices.Contains(others, p) })
	x.faults = slices.DeleteFunc(x.faults, func(f plan.Fault) bool {
		return slices.ContainsFunc(others, func(p *part) bool { return p.Kind == f.Kind && p.Name == f.Name })
	})
	x.d.Tries, x.cleared = most, map[cluster.PartKind]bool{others[0].Kind: true}
	return true
}

// readmitParts takes in parts of which most are without fault, and some were left out untried: ever more of them
// together, so that what is found of them is never found again.
func (x *search[T]) readmitParts(parts []*part) {
	for n := 1; len(parts) > 0 && !x.settled; {
		if n = min(n, len(parts)); x.tries >= x.d.Tries {
			n = len(parts)
		}
		now := parts[:n]
		if parts, n = parts[n:], 1; x.bisect(now, nil) {
			n = 2 * len(now)
		}
	}
}

// singleOut takes in all of the parts but as few as it takes. Unlike bisect it does not conclude that of two that fail
// together it is the later one: whether a decision comes to think of a part depends on which others there are.
func (x *search[T]) singleOut(parts []*part) {
	for len(parts) > 0 && !x.settled {
		if x.tries >= x.d.Tries {
			x.postponeParts(parts)
			return
		}
		if x.decidesOn(parts...) {
			return
		}
		why := x.failed
		few := x.findDispensable(parts, parts)
		switch {
		case len(few) < len(parts) && x.decidesOn(partsExcept(parts, few)...):
			if len(few) > 1 { // the tries are used up
				x.postponeParts(few)
			} else {
				x.recordCulprit(few[0], why)
			}
			return
		case len(few) == len(parts) && len(parts) > 1:
			if few, why = x.smallestFailing(parts, why); len(few) == len(parts) { // no try was left
				x.postponeParts(parts)
				return
			}
		}
		for _, p := range few {
			x.recordCulprit(p, why)
		}
		parts = partsExcept(parts, few)
	}
}

// findDispensable returns the one of few without which the parts do not fail. It returns as few as were found where the
// tries are used up, and all of few where it takes several.
func (x *search[T]) findDispensable(parts, few []*part) []*part {
	for _, half := range [][]*part{few[:len(few)/2], few[len(few)/2:]} {
		if len(few) == 1 || x.tries >= x.d.Tries || x.tryWithout(partsExcept(parts, half)) != nil {
			continue
		}
		if less := x.findDispensable(parts, half); len(less) == 1 || x.tries >= x.d.Tries {
			return less
		}
	}
	return few
}

// smallestFailing is a part that fails by itself, with its failure, or the last of those that fail only together. Where
// the tries are used up it is as few as were found.
func (x *search[T]) smallestFailing(few []*part, why *Panic) ([]*part, *Panic) {
	for len(few) > 1 && x.tries < x.d.Tries {
		half := len(few) / 2
		if failed := x.tryWithout(few[:half]); failed != nil {
			few, why = few[:half], failed
		} else if failed := x.tryWithout(few[half:]); failed != nil {
			few, why = few[half:], failed
		} else if x.tries < x.d.Tries {
			return few[len(few)-1:], why
		}
	}
	return few, why
}

func partsExcept(parts, some []*part) []*part {
	return slices.DeleteFunc(slices.Clone(parts), func(p *part) bool { return slices.Contains(some, p) })
}

// tryWithout is the failure of the decision with the parts, nil if there is none or no try is left. Nothing is taken
// in.
func (x *search[T]) tryWithout(parts []*part) *Panic {
	if x.tries >= x.d.Tries {
		return nil
	}
	best, failed := x.best, x.failed
	if x.decidesOn(parts...) {
		x.leaveOut(parts...)
		x.best, x.failed = best, failed
		return nil
	}
	return x.failed
}

// postponeParts leaves the parts out until the next decision.
func (x *search[T]) postponeParts(parts []*part) {
	for _, p := range parts {
		p.Until, p.Why = x.now, cmp.Or(p.Why, unclear)
	}
	x.found = append(x.found, parts...)
}

func (x *search[T]) leaveOut(parts ...*part) {
	for _, p := range parts {
		x.out[p] = true
	}
}

// decidesOn takes the decision with the parts. If that works they are in from now on.
func (x *search[T]) decidesOn(with ...*part) bool {
	x.tries++
	for _, p := range with {
		delete(x.out, p)
	}
	left := slices.AppendSeq(slices.Clone(x.fixed), maps.Keys(x.out))
	slices.SortFunc(left, func(a, b *part) int { return strings.Compare(asideKey(a.Aside), asideKey(b.Aside)) })
	var out T
	if x.failed = Catch(func() { out = x.d.Take(x.inv.snapshotWithout(left)) }); x.failed == nil {
		x.best, x.works = out, true
		return true
	}
	x.leaveOut(with...)
	return false
}

// bisect takes in as many of the parts as the decision does not fail about, and reports whether those are all. why is
// the failure that is known to come from them, nil if none is. What the tries do not suffice for stays out until the
// next decision.
func (x *search[T]) bisect(parts []*part, why *Panic) bool {
	switch {
	case len(parts) == 0:
		return true
	case why == nil && x.tries >= x.d.Tries:
		x.postponeParts(parts)
		return false
	case why == nil && x.decidesOn(parts...):
		return true
	}
	if why = cmp.Or(why, x.failed); len(parts) == 1 {
		x.recordCulprit(parts[0], why)
		return false
	}
	half := len(parts) / 2
	if !x.bisect(parts[:half], nil) {
		why = nil // the rest may be without fault
	}
	if !x.settled {
		x.bisect(parts[half:], why)
	}
	return false
}

// unclear is the reason of a part that is left out and was not tried yet.
const unclear = "it or another part of the cluster makes decisions fail; which is found out soon"

// recordCulprit leaves out the part.
func (x *search[T]) recordCulprit(p *part, why *Panic) {
	p.Until, p.Why = x.now.Add(asideFor), why.Why
	x.found = append(x.found, p)
	x.faults = append(x.faults, plan.Fault{Kind: p.Kind, Name: p.Name, Pods: x.inv.concernedPods(p.Aside), Why: why.Why,
		Stack: why.Stack})
	if x.failures++; x.failures == 2 && x.second != nil {
		x.settled = x.second()
	}
}
