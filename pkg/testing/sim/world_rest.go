package sim

import "time"

// echo is the time for which what began before the calm may still arrive: late events, and handlers that are tried
// again.
const echo = 200 * time.Second

// How long nothing must be wrong: at rest until every function has run again, since refresh learns from the nodes that
// came last.
const (
	aWhile    = 30 * time.Second
	fullRound = 5*time.Minute + aWhile
)

// runUntilEmpty runs until the list stays empty for as long as stay says, and says that an invariant is broken when it
// does not become so in time. A class of which nodes never became usable in the storm is left alone for an hour: that
// time is not counted.
func (w *world) runUntilEmpty(limit, stay time.Duration, invariant string, list func() []string) {
	const look = 10 * time.Second
	good := time.Duration(0)
	for end := time.Now().Add(limit); len(w.bad) == 0; {
		w.runUntil(time.Now().Add(look), w.network.admitRequest)
		w.dropLate()
		left := list()
		if rests := w.state.classRestsUntil(); rests.Add(limit).After(end) && time.Now().Before(rests) {
			end = rests.Add(limit)
		}
		if good += look; len(left) > 0 || time.Since(w.calmed) < echo {
			good = 0
		}
		if good >= stay {
			return
		}
		if len(w.bad) == 0 && len(left) > 0 && time.Now().After(end) {
			w.addViolation(invariant, "after %s: %v", limit, left)
		}
	}
}

// runSilently runs on for a while, in which nobody may change anything.
func (w *world) runSilently(d time.Duration) {
	before := w.totalMutations()
	w.runUntil(time.Now().Add(d), w.network.admitRequest)
	if n := w.totalMutations() - before; n > 0 {
		w.addViolation("no silence", "%d calls changed something at rest, the last was %s", n, w.changes.last)
	}
}
