package binpack

import (
	"slices"

	"joiner/pkg/model/plan"
)

// waitsInCircle is the reason of pods that a scheduler, which takes one pod after the other, can never place.
const waitsInCircle = "pod affinity: the pods it must be near to wait for others in turn, and none of them can come first; " +
	"let one of them do without, or select itself"

// dropCircles takes out the pods whose required affinity goes round in a circle. Everybody's wish would hold once all
// were there, but nobody can be the first, so nodes made for them would stay empty.
func (top *topologyCounts) dropCircles() {
	came := make([]bool, len(top.classes.list))
	arrives := func(k *podClass) bool {
		for _, r := range k.requiredAffinityRules() {
			if !r.self && !top.hasRunningMatch(r) &&
				!slices.ContainsFunc(top.classes.list, func(o *podClass) bool {
					return came[o.id] &&
						slices.Contains(o.matched, r.counter)
				}) {
				return false
			}
		}
		return true
	}
	for again := true; again; {
		again = false
		for i, k := range top.classes.list {
			if !came[i] && arrives(k) {
				came[i], again = true, true
			}
		}
	}
	for i, k := range top.classes.list {
		if came[i] || slices.ContainsFunc(k.requiredAffinityRules(),
			func(r topologyRule) bool { return !r.self && !top.hasRunningMatch(r) && !top.hasPendingMatch(r) }) {
			continue // of pods that do not exist at all the reason is another
		}
		for _, p := range k.pods {
			top.classes.unmodelled = append(top.classes.unmodelled, plan.Unplaced{Pod: p, Why: []string{waitsInCircle}})
		}
		k.pods = nil
	}
}

// requiredAffinityRules are the rules of required affinity, which no relaxation takes away.
func (k *podClass) requiredAffinityRules() []topologyRule {
	v := k.lastRelaxation()
	return slices.DeleteFunc(slices.Concat(v.host, v.other),
		func(r topologyRule) bool { return r.what != follow || !r.required })
}

// hasRunningMatch reports whether a pod that the rule counts is there already.
func (top *topologyCounts) hasRunningMatch(r topologyRule) bool {
	if r.key == labelHost {
		return top.total[r.counter] > 0
	}
	return sumCounts(top.tally.count[r.counter]) > 0
}

// hasPendingMatch reports whether any pod that waits is counted by the rule.
func (top *topologyCounts) hasPendingMatch(r topologyRule) bool {
	return slices.ContainsFunc(top.classes.list, func(o *podClass) bool { return slices.Contains(o.matched, r.counter) })
}
