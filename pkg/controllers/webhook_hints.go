package controllers

import "time"

// announcedWithin is the time that an announcement may take until it counts as missed.
const announcedWithin = 2 * time.Second

// PushHints say what push has to do with an invocation. A webhook of the cluster announces pods without a node and
// deletions; an announcement comes a moment before what it announces, may stand for several, and may be missing.
type PushHints struct {
	Until time.Time // more is expected until then: stay although there is nothing to do
	// Since is set where the schedule invoked although announcements should have: what happened since then and was seen
	// by nobody was not announced. Zero: nothing is counted.
	Since time.Time
}

// ExpectsHint reports whether it is worth staying without work.
func (h PushHints) ExpectsHint(now time.Time) bool { return now.Before(h.Until) }

// countMissed counts the times of what was not announced.
func (h PushHints) countMissed(now time.Time, times []time.Time) (n int) {
	since := h.Since.Truncate(time.Second) // as objects say it
	for _, at := range times {
		if !at.Before(since) && now.Sub(at) > announcedWithin {
			n++
		}
	}
	return n
}
