package plancheck

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// mostStates bounds the search for an order of arrival.
const mostStates = 20_000

// arrivalOrder searches for an order of arrival in which every newcomer may come when its turn is.
type arrivalOrder struct {
	left   []*arrivingPods
	seen   map[string]bool // states without a way out
	least  []*arrivingPods // who is left where most could come
	why    map[*arrivingPods]string
	fewest int
	uneven bool // spreads do not matter
}

// findOrder tries, one pod after the other, those first whose domains are emptiest, and goes back where it cannot go
// on.
func (o *arrivalOrder) findOrder() bool {
	state := make([]byte, 0, len(o.left)*2)
	count, rest := 0, []*arrivingPods(nil)
	for _, f := range o.left {
		state = append(strconv.AppendInt(state, int64(f.n), 36), ' ')
		if count += f.n; f.n > 0 {
			rest = append(rest, f)
		}
	}
	if count == 0 {
		return true
	}
	if o.seen[string(state)] || len(o.seen) >= mostStates {
		return false
	}
	o.seen[string(state)] = true
	if o.why == nil || count < o.fewest {
		o.fewest, o.least, o.why = count, rest, map[*arrivingPods]string{}
		for _, f := range rest {
			o.why[f] = cmp.Or(o.refusalReason(f), "only where others then cannot")
		}
	}
	slices.SortStableFunc(rest, func(a, b *arrivingPods) int {
		return cmp.Compare(a.fullestDomain(), b.fullestDomain())
	})
	for _, f := range rest {
		if o.refusalReason(f) != "" {
			continue
		}
		f.countArrival(1)
		f.n--
		ok := o.findOrder()
		f.n++
		f.countArrival(-1)
		if ok {
			return true
		}
		if f.keepsNobodyAway() {
			return false // it could have come first: what is left did not fail for it
		}
	}
	return false
}

// keepsNobodyAway reports whether nobody is kept away by the flock's arrival.
func (f *arrivingPods) keepsNobodyAway() bool {
	return len(f.raises) == 0 && !slices.ContainsFunc(f.joins, func(x *affinityConstraint) bool { return x.self })
}

// fullestDomain returns the number of pods in the fullest of the flock's domains. Those who come to no spread of their
// own, yet count in others', wait.
func (f *arrivingPods) fullestDomain() int {
	if f.keepsNobodyAway() {
		return -1
	}
	if len(f.evens) == 0 {
		return 1 << 20
	}
	most := 0
	for _, e := range f.evens {
		most = max(most, e.count[e.value])
	}
	return most
}

// linkCounters notes wherever the flock is counted.
func (t *planCheck) linkCounters(f *arrivingPods, all []*arrivingPods) {
	for _, o := range all {
		for _, e := range o.evens {
			if f.pod.Namespace == o.pod.Namespace && selectorMatches(e.Selector, f.pod.Labels) &&
				t.countsForSpread(e, f.on) {
				f.raises = append(f.raises, e)
			}
		}
		if o.near != nil && t.pickedByAll(o.pod, f.pod) {
			f.joins = append(f.joins, o.near)
		}
	}
}

// countArrival counts n pods of the flock wherever they are counted.
func (f *arrivingPods) countArrival(n int) {
	for _, e := range f.raises {
		if v, ok := f.on.singleValue(e.Key); ok {
			e.count[v] += n
		}
	}
	for _, x := range f.joins {
		x.any += n
		for i, term := range x.terms {
			if v, ok := f.on.singleValue(term.Key); ok {
				x.count[domainPlace{i, v, nil}] += n
			}
			x.count[domainPlace{i, "", f.on}] += n
		}
	}
}

// domainPlace is a value of the key of a term, or one node.
type domainPlace struct {
	term  int
	value string
	on    *possibleNode
}

// countsForSpread reports whether the policies of the spread let the node count, and whether it may have the labels
// of all hard spreads of the pod.
func (t *planCheck) countsForSpread(e *spreadConstraint, m *possibleNode) bool {
	if e.Key == labelHost {
		return true
	}
	if _, out := keepsOut(e.of.pod, m.taints); out && e.HonorTaints {
		return false
	}
	for _, c := range e.of.pod.Spread {
		if !c.Soft && c.Key != labelHost && len(m.labelValues(c.Key)) == 0 {
			return false
		}
	}
	return e.IgnoreNodeAffinity || slices.ContainsFunc(m.shapes,
		func(s possibleShape) bool { return podSuits(e.of.pod, s.labels, true) })
}

// refusalReason says why the next pod of the flock may not come now, empty when it may.
func (o *arrivalOrder) refusalReason(f *arrivingPods) string {
	if why := f.brokenSpread(1); why != "" && !o.uneven {
		return why
	}
	if f.near == nil || f.near.any == 0 && f.near.self {
		return ""
	}
	for i, term := range f.near.terms {
		v, known := f.on.singleValue(term.Key)
		if f.near.count[domainPlace{i, "", f.on}] == 0 && (!known || f.near.count[domainPlace{i, v, nil}] == 0) {
			return fmt.Sprintf("nobody to be near to in %v of %s", f.on.labelValues(term.Key), term.Key)
		}
	}
	return ""
}

// brokenSpread says which spread of the flock has too many pods where it is if so many more come, empty for none.
func (f *arrivingPods) brokenSpread(more int) string {
	for _, e := range f.evens {
		least := -1
		for _, d := range e.least {
			if n := e.count[d]; least < 0 || n < least {
				least = n
			}
		}
		if least < 0 || len(e.least) < int(e.MinDomains) {
			least = 0
		}
		have := e.count[e.value]
		if e.self {
			have += more
		}
		if have-least > int(e.MaxSkew) {
			return fmt.Sprintf("%d pods in %s, %d in the least of %s %v", have, e.value, least, e.Key, e.least)
		}
	}
	return ""
}
