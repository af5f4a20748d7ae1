package sim_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"joiner.sh/pkg/testing/sim"
)

// calls are the port calls that a function may be hit at.
type calls struct {
	name  string
	calls []string
}

// crashPoints are all places where an invocation can be hit: before and after every port call of every function, deadly
// or not.
func crashPoints() []sim.CrashPoint {
	return slices.Concat(usualPoints(), volumePoints(), rarePoints())
}

// rarePoints are those that no seed aims at but where points are hunted that seeds missed: nodes that never become usable,
// and none after them that does, are few.
func rarePoints() []sim.CrashPoint {
	return pointsOf([]calls{{"lifecycle", []string{"note unused nodes"}}})
}

// volumePoints are those that only worlds with volumes have.
func volumePoints() []sim.CrashPoint {
	reads := []string{"read volumes", "read volume limits"}
	return pointsOf([]calls{{"disrupt", reads}, {"lifecycle", reads}, {"provision", reads}})
}

// usualPoints are those that every world may have.
func usualPoints() []sim.CrashPoint {
	return pointsOf([]calls{
		{"provision", []string{"let tolerate", "acquire lease", "ask who watches", "keep watch lease", "leave watch lease", "annotate claim", "create claim", "delete claim", "get class", "label claim", "launch", "launch batch",
			"list claims", "list pending pods", "list static pools", "look for the instance", "mark unavailable", "note unused nodes", "put metrics", "read catalog", "read claims", "read nodes",
			"read pods", "read unavailable offerings", "read the rest", "release lease", "wait", "wake lifecycle", "wake refresh", "write event",
			"write status of claim"}},
		{"lifecycle", []string{"open node", "ask who watches", "keep watch lease", "leave watch lease", "annotate claim", "mark node disrupted", "count pool", "delete claim", "delete node", "delete pod", "describe instance status", "evict pod",
			"get claim", "initialize node", "list attachments", "list instances", "list pods of node", "put metrics", "read cache", "read claims", "read nodes", "read pods", "read the rest", "record registrations", "register node",
			"release claim", "release node", "sweep launch templates", "tag instance", "taint node", "terminate", "wait", "wake provision", "wake refresh",
			"write event", "write status of claim"}},
		{"spotinterruption", []string{"ask who watches", "annotate claim", "mark node disrupted", "delete claim", "get node", "list claims of instances", "mark unavailable",
			"put metrics", "wake lifecycle", "wake provision", "write event"}},
		{"reservationinterruption", []string{"ask who watches", "annotate claim", "mark node disrupted", "delete claim", "get node", "list claims of instances",
			"put metrics", "wake lifecycle", "wake provision", "write event"}},
		{"disrupt", []string{"acquire lease", "annotate claim", "ask who watches", "create claim", "delete claim", "list claims", "list instances", "put metrics", "read catalog",
			"read claims", "read nodes", "read pods", "read unavailable offerings", "read the rest", "recall", "release lease", "remember", "taint node",
			"untaint node", "wake lifecycle", "wake provision", "write event", "write status of claim"}},
		{"statechange", []string{"ask who watches", "annotate claim", "mark node disrupted", "delete claim", "delete node", "delete pod", "get node", "list claims of instances",
			"list pods of node", "put metrics", "release claim", "release node", "remove pod", "wake lifecycle", "wake provision", "write event"}},
		{"rebalance", []string{"ask who watches", "annotate claim", "get node", "get pool", "list claims of instances", "mark unavailable", "put metrics", "take of quota",
			"wake provision", "write event"}},
		{"scheduledchange", []string{"ask who watches", "annotate claim", "mark node disrupted", "delete claim", "get node", "list claims of instances", "put metrics", "wake lifecycle",
			"wake provision", "write event"}},
		// Of refresh two calls cannot come in these worlds: claims are annotated when a class or pool has a hash of
		// another version, and no claim is made before its class has one of this; an event tells of a deleted class
		// with claims, and the one that is deleted has none.
		{"refresh", []string{"forget class", "annotate pool", "get class", "list buffers", "list classes", "list claims", "list nodes", "list overlays", "list pools",
			"list profiles", "look up class", "put metrics", "read catalog", "mark class", "refresh catalog", "release class", "write status of class", "write status of pool"}},
	})
}

// hasCall reports whether one of the points is of the call of p, however either is hit.
func hasCall(points []sim.CrashPoint, p sim.CrashPoint) bool {
	return slices.ContainsFunc(points, func(known sim.CrashPoint) bool { return known.Function == p.Function && known.Call == p.Call })
}

func pointsOf(all []calls) (out []sim.CrashPoint) {
	for _, f := range all {
		for _, call := range f.calls {
			for _, fault := range []string{"dies before", "dies after", "fails before", "fails after"} {
				out = append(out, sim.CrashPoint{Function: f.name, Call: call, Fault: fault})
			}
		}
	}
	return out
}

// aims gives a seed its crash points. Each point has seeds of its own, one in any row of as many seeds as there are
// points: such a seed is about the point's function, and aims at nothing else there, so that the invocation gets as far
// as the point. Beside it the seed aims at points of other functions. Those of volumes come last, so that seeds mean
// what they meant before there were any.
func aims(seed uint64) []sim.CrashPoint {
	const others, stride = 8, 211
	all := usualPoints()
	out := []sim.CrashPoint{all[seed*stride%uint64(len(all))]}
	for _, i := range rand.New(rand.NewPCG(seed, 0)).Perm(len(all)) {
		if all[i].Function != out[0].Function && len(out) <= others {
			out = append(out, all[i])
		}
	}
	if p := volumePoints()[seed%uint64(len(volumePoints()))]; p.Function != out[0].Function {
		out = append(out, p)
	}
	return out
}

// aimed is what a seed aims at: the point of the flag, or its own.
func aimed(seed uint64) []sim.CrashPoint {
	for _, p := range crashPoints() {
		if p.String() == *aim {
			return []sim.CrashPoint{p}
		}
	}
	return aims(seed)
}

// TestEveryPointHasItsSeeds: the stride reaches all points.
func TestEveryPointHasItsSeeds(t *testing.T) {
	own := map[sim.CrashPoint]bool{}
	all := usualPoints()
	for seed := range uint64(len(all)) {
		own[aims(1000 + seed)[0]] = true
	}
	if len(own) != len(all) {
		t.Errorf("%d of %d crash points have a seed of their own: change the stride", len(own), len(all))
	}
}
