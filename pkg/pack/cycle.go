package pack

import (
	"slices"

	"joiner/pkg/plan"
)

// waitsInCircle is the reason of pods that a scheduler, which takes one pod after the other, can never place.
const waitsInCircle = "pod affinity: the pods it must be near to wait for others in turn, and none of them can come first; " +
	"let one of them do without, or select itself"

// dropCircles takes out the pods whose required affinity goes round in a circle. Everybody's wish would hold once all were there, but
// nobody can be the first, so nodes made for them would stay empty.
func (w *world) dropCircles() {
	came := make([]bool, len(w.kinds))
	arrives := func(k *kind) bool {
		for _, r := range k.follows() {
			if !r.self && !w.stands(r) && !slices.ContainsFunc(w.kinds, func(o *kind) bool { return came[o.id] && slices.Contains(o.matched, r.counter) }) {
				return false
			}
		}
		return true
	}
	for again := true; again; {
		again = false
		for i, k := range w.kinds {
			if !came[i] && arrives(k) {
				came[i], again = true, true
			}
		}
	}
	for i, k := range w.kinds {
		if came[i] || slices.ContainsFunc(k.follows(), func(r rule) bool { return !r.self && !w.stands(r) && !w.known(r) }) {
			continue // of pods that do not exist at all the reason is another
		}
		for _, p := range k.pods {
			w.unmodelled = append(w.unmodelled, plan.Unplaced{Pod: p, Why: []string{waitsInCircle}})
		}
		k.pods = nil
	}
}

// follows are the rules of required affinity, which no relaxation takes away.
func (k *kind) follows() []rule {
	v := k.last()
	return slices.DeleteFunc(slices.Concat(v.host, v.other), func(r rule) bool { return r.what != follow || !r.required })
}

// stands reports whether a pod that the rule counts is there already.
func (w *world) stands(r rule) bool {
	if r.key == labelHost {
		return w.total[r.counter] > 0
	}
	return sum(w.tally.count[r.counter]) > 0
}

// known reports whether any pod that waits is counted by the rule.
func (w *world) known(r rule) bool {
	return slices.ContainsFunc(w.kinds, func(o *kind) bool { return slices.Contains(o.matched, r.counter) })
}
