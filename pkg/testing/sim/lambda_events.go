package sim

import "time"

// The kinds of events that EC2 sends.
const (
	EventState     = "state change"
	EventSpot      = "spot interruption"
	EventRebalance = "rebalance recommendation"
	EventHealth    = "scheduled change"

	EventReservation = "reservation interruption"
)

// Event invokes a function.
type Event struct {
	Kind     string
	Instance string
	State    string    // of a state change
	Time     time.Time // when it was sent
	From     time.Time // of a scheduled change: when its window opens

	waits bool     // its invocation waits for its turn, instead of being dropped
	chain []string // of functions, each of which woke the next, and the last what this invokes
}

// emitEvent sends an event to the functions that listen: usually at once, sometimes late, twice or never. Order is not
// kept.
func (l *lambda) emitEvent(e Event) {
	e.waits, e.Time = true, time.Now()
	for _, fn := range l.order {
		if fn.Event != e.Kind {
			continue
		}
		copies := 1
		if l.troubleChance(l.plan.lost) {
			copies = 0
		} else if l.troubleChance(l.plan.double) {
			copies = 2
		}
		for range copies {
			delay := l.drawDuration(100*time.Millisecond, 2*time.Second)
			if l.troubleChance(0.1) {
				delay = l.drawDuration(5*time.Second, 70*time.Second)
			}
			l.runAfter(delay, func() { l.invokeAsync(fn, e, 0, time.Now()) })
		}
	}
}
