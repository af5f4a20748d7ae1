package checker

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
)

// mostStates bounds the search for an order of arrival.
const mostStates = 20_000

// order searches for an order of arrival in which every newcomer may come when its turn is.
type order struct {
	left   []*flock
	seen   map[string]bool // states without a way out
	least  []*flock        // who is left where most could come
	why    map[*flock]string
	fewest int
	uneven bool // spreads do not matter
}

// exists tries, one pod after the other, those first whose domains are emptiest, and goes back where it cannot go on.
func (o *order) exists() bool {
	state := make([]byte, 0, len(o.left)*2)
	count, rest := 0, []*flock(nil)
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
		o.fewest, o.least, o.why = count, rest, map[*flock]string{}
		for _, f := range rest {
			o.why[f] = cmp.Or(o.refusal(f), "only where others then cannot")
		}
	}
	slices.SortStableFunc(rest, func(a, b *flock) int { return cmp.Compare(a.crowd(), b.crowd()) })
	for _, f := range rest {
		if o.refusal(f) != "" {
			continue
		}
		f.enter(1)
		f.n--
		ok := o.exists()
		f.n++
		f.enter(-1)
		if ok {
			return true
		}
		if f.harmless() {
			return false // it could have come first: what is left did not fail for it
		}
	}
	return false
}

// harmless reports whether nobody is kept away by the flock's arrival.
func (f *flock) harmless() bool {
	return len(f.raises) == 0 && !slices.ContainsFunc(f.joins, func(x *near) bool { return x.self })
}

// crowd is how full the fullest of the flock's domains is. Those who come to no spread of their own, yet count in others', wait.
func (f *flock) crowd() int {
	if f.harmless() {
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

// link notes wherever the flock is counted.
func (t *trial) link(f *flock, all []*flock) {
	for _, o := range all {
		for _, e := range o.evens {
			if f.pod.Namespace == o.pod.Namespace && selects(e.Selector, f.pod.Labels) && t.counted(e, f.on) {
				f.raises = append(f.raises, e)
			}
		}
		if o.near != nil && t.pickedByAll(o.pod, f.pod) {
			f.joins = append(f.joins, o.near)
		}
	}
}

// enter counts n pods of the flock wherever they are counted.
func (f *flock) enter(n int) {
	for _, e := range f.raises {
		if v, ok := f.on.value(e.Key); ok {
			e.count[v] += n
		}
	}
	for _, x := range f.joins {
		x.any += n
		for i, term := range x.terms {
			if v, ok := f.on.value(term.Key); ok {
				x.count[place{i, v, nil}] += n
			}
			x.count[place{i, "", f.on}] += n
		}
	}
}

// place is a value of the key of a term, or one machine.
type place struct {
	term  int
	value string
	on    *machine
}

// counted reports whether the policies of the spread let the machine count.
func (t *trial) counted(e *even, m *machine) bool {
	if e.Key == labelHost {
		return true
	}
	if _, out := keepsOut(e.of.pod, m.taints); out && e.HonorTaints {
		return false
	}
	return e.IgnoreNodeAffinity || slices.ContainsFunc(m.shapes, func(s shape) bool { return suits(e.of.pod, s.labels, true) })
}

// refusal says why the next pod of the flock may not come now, empty when it may.
func (o *order) refusal(f *flock) string {
	if why := f.uneven(1); why != "" && !o.uneven {
		return why
	}
	if f.near == nil || f.near.any == 0 && f.near.self {
		return ""
	}
	for i, term := range f.near.terms {
		v, known := f.on.value(term.Key)
		if f.near.count[place{i, "", f.on}] == 0 && (!known || f.near.count[place{i, v, nil}] == 0) {
			return fmt.Sprintf("nobody to be near to in %v of %s", f.on.values(term.Key), term.Key)
		}
	}
	return ""
}

// uneven says which spread of the flock has too many pods where it is if so many more come, empty for none.
func (f *flock) uneven(more int) string {
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
