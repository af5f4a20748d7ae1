package disruption

import (
	"math/bits"
	"time"
)

// Overruns counts the passes that may have been cut off by the time limit of a function, which loses what they learnt.
// Each of them halves what a pass asks, so that the next ones end; where even one question is too much, nothing is
// asked any more, and what is under way still goes on.
type Overruns struct {
	Times int       `json:"times,omitempty"` // passes that are not forgiven yet
	Since time.Time `json:"since,omitzero"`  // of the last of them, or since it was forgiven
}

const (
	// forgivenAfter is after how long one overrun is not counted any more.
	forgivenAfter = time.Hour
	noTime        = "passes ran out of time: for a while nothing is asked that takes long"
)

// RunLate returns what a pass remembers, in place of m, as long as it may be cut off: one overrun more.
func (m Memory) RunLate(now time.Time) Memory {
	m.Overruns = m.Overruns.decayAt(now)
	m.Overruns = Overruns{m.Overruns.Times + 1, now}
	return m
}

// decayAt returns what is left of the overruns later.
func (o Overruns) decayAt(now time.Time) Overruns {
	switch {
	case o.Times <= 0:
		return Overruns{}
	case o.Since.After(now): // the clock was set back
		return Overruns{o.Times, now}
	case now.Before(o.Since.Add(forgivenAfter)):
		return o
	case o.Times == 1:
		return Overruns{}
	}
	return Overruns{o.Times - 1, now}
}

// upTo returns the overruns that count where a pass may ask so many questions: one more than these asks nothing either.
func (o Overruns) upTo(questions int) Overruns {
	o.Times = min(o.Times, bits.Len(uint(questions)))
	return o
}

// reduceRules returns the rules for passes that ask that much less.
func (o Overruns) reduceRules(r disruptionRules) disruptionRules {
	r.steps >>= o.Times
	return r
}
