package sim

import (
	"time"

	"joiner/pkg/model/instancetypes"
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

// emitEvent sends an event to the functions that listen: usually at once, sometimes late, twice or never. Order is not
// kept.
func (w *world) emitEvent(e Event) {
	e.waits, e.Time = true, time.Now()
	for _, fn := range w.order {
		if fn.Event != e.Kind {
			continue
		}
		copies := 1
		if w.troubleChance(w.plan.lost) {
			copies = 0
		} else if w.troubleChance(w.plan.double) {
			copies = 2
		}
		for range copies {
			delay := w.drawDuration(100*time.Millisecond, 2*time.Second)
			if w.troubleChance(0.1) {
				delay = w.drawDuration(5*time.Second, 70*time.Second)
			}
			w.runAfter(delay, func() { w.invokeAsync(fn, e, 0, time.Now()) })
		}
	}
}

// interruptInstance is an interruption: the warning, and two minutes later the end.
func (w *world) interruptInstance(m *machine) {
	kind := EventReservation
	if m.CapacityType == instancetypes.Spot {
		kind = EventSpot
	}
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.taken, m.dies = true, true, time.Now().Add(2*time.Minute)
	w.addTrace("EC2 takes %s back in two minutes", m.ID)
	w.emitEvent(Event{Kind: kind, Instance: m.ID})
	w.runAfter(2*time.Minute, func() { w.endInstance(m, "EC2") })
}

// recommendRebalance is a rebalance recommendation, after which anything may happen.
func (w *world) recommendRebalance(m *machine) {
	w.addTrace("EC2 recommends to leave %s", m.ID)
	w.emitEvent(Event{Kind: EventRebalance, Instance: m.ID})
	w.guardRecommended(m)
	if w.drawChance(0.2) {
		w.runAfter(w.drawDuration(time.Minute, 8*time.Minute), func() {
			if w.faults.on {
				w.interruptInstance(m)
			}
		})
	}
}

// announceChange is a scheduled change of an instance: it is stopped at that date, if it still runs. Its status says
// so, and mostly an event.
func (w *world) announceChange(m *machine, in time.Duration) {
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.dies = true, time.Now().Add(in)
	m.change, m.changeShows = m.dies.Truncate(time.Second), time.Now().Add(w.drawDuration(0, checkLag))
	w.addTrace("EC2 will stop %s in %s", m.ID, in)
	if w.drawChance(0.4) {
		w.addTrace("AWS Health does not say so")
	} else {
		w.emitEvent(Event{Kind: EventHealth, Instance: m.ID, From: m.change})
	}
	w.runAfter(in, func() {
		if !m.change.IsZero() {
			w.stopInstance(m)
		}
	})
}

// stopInstance stops an instance without ending it.
func (w *world) stopInstance(m *machine) {
	if m.Gone() || m.State == "stopping" || m.State == "stopped" {
		return
	}
	w.addTrace("instance %s is stopped", m.ID)
	m.endedBy = "EC2"
	w.enterState(m, "stopping")
	w.silenceMachine(m)
	w.runAfter(w.drawDuration(5*time.Second, 40*time.Second), func() {
		if m.State == "stopping" {
			w.enterState(m, "stopped")
		}
	})
}
