package sim

import (
	"cmp"
	"fmt"
	"slices"
)

// callFault is a way in which one call goes wrong.
type callFault int

const (
	fine callFault = iota
	dieBefore
	dieAfter
	failBefore
	failAfter
)

// String says the fault in a few words.
func (f callFault) String() string {
	switch f {
	case fine:
		return "ok"
	case dieBefore:
		return "dies before"
	case dieAfter:
		return "dies after"
	case failBefore:
		return "fails before"
	case failAfter:
		return "fails after"
	}
	return fmt.Sprintf("fault(%d)", int(f))
}

// CrashPoint is a place where an invocation can be hit: a port call of a function, and what happens there.
type CrashPoint struct {
	Function string
	Call     string
	Fault    string // dies before, dies after, fails before, fails after
}

// String names it.
func (c CrashPoint) String() string { return c.Function + " " + c.Fault + " " + c.Call }

func compareCrashPoints(a, b CrashPoint) int {
	return cmp.Or(cmp.Compare(a.Function, b.Function), cmp.Compare(a.Call, b.Call), cmp.Compare(a.Fault, b.Fault))
}

// faultSource draws what goes wrong. While there is trouble, it hits the seed's own crash points, each once, and
// others at random now and then.
type faultSource struct {
	*engine
	aims  []CrashPoint
	rate  float64
	calls map[CrashPoint]bool // calls seen, Fault empty
	hit   map[CrashPoint]bool
}

// newFaultSource has no crash points to hit yet.
func newFaultSource(e *engine) faultSource {
	return faultSource{engine: e, calls: map[CrashPoint]bool{}, hit: map[CrashPoint]bool{}}
}

func (f *faultSource) nextFault(r *portRequest) callFault {
	at := CrashPoint{Function: r.inv.fn.Name, Call: r.call}
	f.calls[at] = true
	if !f.trouble {
		return fine
	}
	drawn := fine
	aim := slices.IndexFunc(f.aims, func(c CrashPoint) bool { return c.Function == at.Function && c.Call == at.Call })
	switch {
	case aim >= 0 && f.drawChance(0.7):
		drawn = faultNamed(f.aims[aim].Fault)
		f.aims = slices.Delete(f.aims, aim, aim+1)
	case f.drawChance(f.rate):
		drawn = callFault(1 + f.rng.IntN(4))
	}
	if drawn != fine {
		at.Fault = drawn.String()
		f.hit[at] = true
	}
	return drawn
}

func faultNamed(s string) callFault {
	for f := dieBefore; f <= failAfter; f++ {
		if f.String() == s {
			return f
		}
	}
	return fine
}

// sortedPoints lists a set of crash points.
func sortedPoints(set map[CrashPoint]bool) []CrashPoint {
	out := make([]CrashPoint, 0, len(set))
	for c := range set {
		out = append(out, c)
	}
	slices.SortFunc(out, compareCrashPoints)
	return out
}
