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
func (s *search[T]) result() Decided[T] {
	out := Decided[T]{Out: s.best, Failed: !s.works, Faults: s.faults}
	for _, a := range s.known {
		if s.now.Before(a.Until) { // also if it is not there now
			if s.cleared[a.Kind] {
				a.Until = s.now
			}
			out.Aside = append(out.Aside, a)
		}
	}
	for _, p := range s.found {
		out.Aside = append(out.Aside, p.Aside)
	}
	slices.SortFunc(out.Aside, func(a, b cluster.Aside) int { return strings.Compare(asideKey(a), asideKey(b)) })
	if s.works {
		out.Pods, out.Pools = unplacedBy(s.inv, out.Aside)
		return out
	}
	var all []cluster.Aside
	for _, p := range s.inv.byKey {
		p.Why = s.failed.Why
		all = append(all, p.Aside)
	}
	out.Pods, _ = unplacedBy(s.inv, all)
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
func (s *search[T]) isolateCulprits() {
	s.out = map[*part]bool{}
	var again []*part
	for _, a := range s.known {
		p := s.inv.findPart(a)
		switch {
		case p == nil: // it is gone
		case s.now.Before(a.Until):
			p.Why, p.Until = a.Why, a.Until
			s.fixed = append(s.fixed, p)
		default:
			p.Why = a.Why
			again = append(again, p)
		}
	}
	s.leaveOut(again...)
	sift := s.readmitParts
	if s.failed != nil || !s.decidesOn() {
		if s.decidesQuickly() {
			return
		}
		for _, g := range s.inv.groups {
			s.leaveOut(g...)
		}
		if !s.decidesOn() {
			s.faults = []plan.Fault{{Why: s.failed.Why, Stack: s.failed.Stack}}
			return
		}
		sift = func(parts []*part) { s.bisect(parts, nil) }
	}
	for i := range s.inv.groups {
		s.takeIn(i, sift)
	}
	sift(slices.DeleteFunc(again, func(p *part) bool { return p.For == "" })) // of no group
}

// decidesQuickly takes the decision without what only makes it better, about all that is not left out untried. Where
// that works, no part of the snapshot is at fault.
func (s *search[T]) decidesQuickly() bool {
	if s.d.Quick == nil {
		return false
	}
	why, out := s.failed, *new(T)
	if Catch(func() { out = s.d.Quick(s.inv.snapshotWithout(s.fixed)) }) != nil {
		return false
	}
	s.best, s.works, s.out = out, true, map[*part]bool{}
	s.faults = []plan.Fault{{Kind: cluster.SearchPart, Why: why.Why, Stack: why.Stack}}
	return true
}

// takeIn takes in what can be of one group. Where several of it fail, it may be a part of an earlier group that all of
// them need.
func (s *search[T]) takeIn(i int, sift func([]*part)) {
	parts := slices.DeleteFunc(s.candidateParts(i), func(p *part) bool { return !s.out[p] })
	before := len(s.found)
	s.failures, s.settled = 0, false
	s.second = func() bool {
		for j := range i {
			if s.blameInstead(s.candidateParts(j), parts) {
				return true
			}
		}
		return false
	}
	if len(parts) > 0 && parts[0].Kind == cluster.ClaimPart {
		s.singleOut(parts)
	} else {
		sift(parts)
	}
	s.second = nil
	if one := slices.Clone(s.found[before:]); !s.settled && len(one) == 1 && one[0].Kind == cluster.WaitingPods &&
		len(s.inv.s.Pools) > 1 {
		s.blameInstead(s.inv.poolParts(one[0].Name), one) // nodes of other pools may do
	}
}

// candidateParts are the parts of a group that are not left out anyhow.
func (s *search[T]) candidateParts(i int) []*part {
	return slices.DeleteFunc(slices.Clone(s.inv.groups[i]), func(p *part) bool { return slices.Contains(s.fixed, p) })
}

// blameInstead leaves out one of the parts in the place of the others, if that does, and reports whether it has.
func (s *search[T]) blameInstead(parts, others []*part) bool {
	was, most := *s, s.d.Tries
	s.out, s.found, s.faults = maps.Clone(s.out), slices.Clone(s.found), slices.Clone(s.faults)
	s.second, s.settled, s.d.Tries = nil, false, min(most, s.tries+mostInstead)
	ok := false
	if s.tries < s.d.Tries && len(parts) > 0 {
		s.leaveOut(parts...)
		if s.decidesOn(others...) {
			s.bisect(parts, nil)
			blamed := s.found[len(was.found):]
			ok = len(parts) > 1 && (len(blamed) == 0 || len(blamed) == 1 && s.now.Before(blamed[0].Until))
		}
	}
	if !ok {
		tries, failed := s.tries, s.failed
		*s = was
		s.tries, s.failed = tries, failed
		return false
	}
	s.found = slices.DeleteFunc(s.found, func(p *part) bool { return slices.Contains(others, p) })
	s.faults = slices.DeleteFunc(s.faults, func(f plan.Fault) bool {
		return slices.ContainsFunc(others, func(p *part) bool { return p.Kind == f.Kind && p.Name == f.Name })
	})
	s.d.Tries, s.cleared = most, map[cluster.PartKind]bool{others[0].Kind: true}
	return true
}

// readmitParts takes in parts of which most are without fault, and some were left out untried: ever more of them
// together, so that what is found of them is never found again.
func (s *search[T]) readmitParts(parts []*part) {
	for n := 1; len(parts) > 0 && !s.settled; {
		if n = min(n, len(parts)); s.tries >= s.d.Tries {
			n = len(parts)
		}
		now := parts[:n]
		if parts, n = parts[n:], 1; s.bisect(now, nil) {
			n = 2 * len(now)
		}
	}
}

// singleOut takes in all of the parts but as few as it takes. Unlike bisect it does not conclude that of two that fail
// together it is the later one: whether a decision comes to think of a part depends on which others there are.
func (s *search[T]) singleOut(parts []*part) {
	for len(parts) > 0 && !s.settled {
		if s.tries >= s.d.Tries {
			s.postponeParts(parts)
			return
		}
		if s.decidesOn(parts...) {
			return
		}
		why := s.failed
		few := s.findDispensable(parts, parts)
		switch {
		case len(few) < len(parts) && s.decidesOn(partsExcept(parts, few)...):
			if len(few) > 1 { // the tries are used up
				s.postponeParts(few)
			} else {
				s.recordCulprit(few[0], why)
			}
			return
		case len(few) == len(parts) && len(parts) > 1:
			if few, why = s.smallestFailing(parts, why); len(few) == len(parts) { // no try was left
				s.postponeParts(parts)
				return
			}
		}
		for _, p := range few {
			s.recordCulprit(p, why)
		}
		parts = partsExcept(parts, few)
	}
}

// findDispensable returns the one of few without which the parts do not fail. It returns as few as were found where the
// tries are used up, and all of few where it takes several.
func (s *search[T]) findDispensable(parts, few []*part) []*part {
	for _, half := range [][]*part{few[:len(few)/2], few[len(few)/2:]} {
		if len(few) == 1 || s.tries >= s.d.Tries || s.tryWithout(partsExcept(parts, half)) != nil {
			continue
		}
		if less := s.findDispensable(parts, half); len(less) == 1 || s.tries >= s.d.Tries {
			return less
		}
	}
	return few
}

// smallestFailing is a part that fails by itself, with its failure, or the last of those that fail only together. Where
// the tries are used up it is as few as were found.
func (s *search[T]) smallestFailing(few []*part, why *Panic) ([]*part, *Panic) {
	for len(few) > 1 && s.tries < s.d.Tries {
		half := len(few) / 2
		if failed := s.tryWithout(few[:half]); failed != nil {
			few, why = few[:half], failed
		} else if failed := s.tryWithout(few[half:]); failed != nil {
			few, why = few[half:], failed
		} else if s.tries < s.d.Tries {
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
func (s *search[T]) tryWithout(parts []*part) *Panic {
	if s.tries >= s.d.Tries {
		return nil
	}
	best, failed := s.best, s.failed
	if s.decidesOn(parts...) {
		s.leaveOut(parts...)
		s.best, s.failed = best, failed
		return nil
	}
	return s.failed
}

// postponeParts leaves the parts out until the next decision.
func (s *search[T]) postponeParts(parts []*part) {
	for _, p := range parts {
		p.Until, p.Why = s.now, cmp.Or(p.Why, unclear)
	}
	s.found = append(s.found, parts...)
}

func (s *search[T]) leaveOut(parts ...*part) {
	for _, p := range parts {
		s.out[p] = true
	}
}

// decidesOn takes the decision with the parts. If that works they are in from now on.
func (s *search[T]) decidesOn(with ...*part) bool {
	s.tries++
	for _, p := range with {
		delete(s.out, p)
	}
	left := slices.AppendSeq(slices.Clone(s.fixed), maps.Keys(s.out))
	slices.SortFunc(left, func(a, b *part) int { return strings.Compare(asideKey(a.Aside), asideKey(b.Aside)) })
	var out T
	if s.failed = Catch(func() { out = s.d.Take(s.inv.snapshotWithout(left)) }); s.failed == nil {
		s.best, s.works = out, true
		return true
	}
	s.leaveOut(with...)
	return false
}

// bisect takes in as many of the parts as the decision does not fail about, and reports whether those are all. why is
// the failure that is known to come from them, nil if none is. What the tries do not suffice for stays out until the
// next decision.
func (s *search[T]) bisect(parts []*part, why *Panic) bool {
	switch {
	case len(parts) == 0:
		return true
	case why == nil && s.tries >= s.d.Tries:
		s.postponeParts(parts)
		return false
	case why == nil && s.decidesOn(parts...):
		return true
	}
	if why = cmp.Or(why, s.failed); len(parts) == 1 {
		s.recordCulprit(parts[0], why)
		return false
	}
	half := len(parts) / 2
	if !s.bisect(parts[:half], nil) {
		why = nil // the rest may be without fault
	}
	if !s.settled {
		s.bisect(parts[half:], why)
	}
	return false
}

// unclear is the reason of a part that is left out and was not tried yet.
const unclear = "it or another part of the cluster makes decisions fail; which is found out soon"

// recordCulprit leaves out the part.
func (s *search[T]) recordCulprit(p *part, why *Panic) {
	p.Until, p.Why = s.now.Add(asideFor), why.Why
	s.found = append(s.found, p)
	s.faults = append(s.faults, plan.Fault{Kind: p.Kind, Name: p.Name, Pods: s.inv.concernedPods(p.Aside), Why: why.Why,
		Stack: why.Stack})
	if s.failures++; s.failures == 2 && s.second != nil {
		s.settled = s.second()
	}
}
