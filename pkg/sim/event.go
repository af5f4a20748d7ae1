package sim

import (
	"time"

	"joiner/pkg/catalog"
)

// The kinds of events that EC2 sends.
const (
	EventState     = "state change"
	EventSpot      = "spot interruption"
	EventRebalance = "rebalance recommendation"
	EventHealth    = "scheduled change"

	EventReservation = "reservation interruption"
)

// Event is what invokes a function.
type Event struct {
	Kind     string
	Instance string
	State    string    // of a state change
	Time     time.Time // when it was sent
	From     time.Time // of a scheduled change: when its window opens

	waits bool // its invocation waits for its turn, instead of being dropped
}

// emit sends an event to the functions that listen: usually at once, sometimes late, twice or never. Order is not kept.
func (w *world) emit(e Event) {
	e.waits, e.Time = true, time.Now()
	for _, fn := range w.order {
		if fn.Event != e.Kind {
			continue
		}
		copies := 1
		if w.troubles(w.plan.lost) {
			copies = 0
		} else if w.troubles(w.plan.double) {
			copies = 2
		}
		for range copies {
			delay := w.between(100*time.Millisecond, 2*time.Second)
			if w.troubles(0.1) {
				delay = w.between(5*time.Second, 70*time.Second)
			}
			w.in(delay, func() { w.invoke(fn, e, 0, time.Now()) })
		}
	}
}

// notice is an interruption: the warning, and two minutes later the end.
func (w *world) notice(m *machine) {
	kind := EventReservation
	if m.CapacityType == catalog.Spot {
		kind = EventSpot
	}
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.taken, m.dies = true, true, time.Now().Add(2*time.Minute)
	w.tell("EC2 takes %s back in two minutes", m.ID)
	w.emit(Event{Kind: kind, Instance: m.ID})
	w.in(2*time.Minute, func() { w.stop(m, "EC2") })
}

// recommend is a rebalance recommendation, after which anything may happen.
func (w *world) recommend(m *machine) {
	w.tell("EC2 recommends to leave %s", m.ID)
	w.emit(Event{Kind: EventRebalance, Instance: m.ID})
	w.guardRecommended(m)
	if w.chance(0.2) {
		w.in(w.between(time.Minute, 8*time.Minute), func() {
			if w.faults.on {
				w.notice(m)
			}
		})
	}
}

// announce is a scheduled change of an instance: it is stopped at that date, if it still runs. Its status says so, and mostly an event.
func (w *world) announce(m *machine, in time.Duration) {
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.dies = true, time.Now().Add(in)
	m.change, m.changeShows = m.dies.Truncate(time.Second), time.Now().Add(w.between(0, checkLag))
	w.tell("EC2 will stop %s in %s", m.ID, in)
	if w.chance(0.4) {
		w.tell("AWS Health does not say so")
	} else {
		w.emit(Event{Kind: EventHealth, Instance: m.ID, From: m.change})
	}
	w.in(in, func() {
		if !m.change.IsZero() {
			w.halt(m)
		}
	})
}

// halt stops an instance without ending it.
func (w *world) halt(m *machine) {
	if m.Gone() || m.State == "stopping" || m.State == "stopped" {
		return
	}
	w.tell("instance %s is stopped", m.ID)
	m.endedBy = "EC2"
	w.enter(m, "stopping")
	w.silence(m)
	w.in(w.between(5*time.Second, 40*time.Second), func() {
		if m.State == "stopping" {
			w.enter(m, "stopped")
		}
	})
}
