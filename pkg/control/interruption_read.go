package control

import (
	"fmt"
	"sync"
	"time"

	"joiner/events"
	"joiner/pkg/interrupt"
)

// Place is where we are. Events from elsewhere are dropped without asking anybody; an empty field is not compared.
type Place struct{ Account, Region string }

// notices reads an event. why says that it is well-formed and nothing of ours; the error, that it makes no sense for this kind.
func (p Place) notices(kind events.Kind, data []byte) (list []interrupt.Notice, why string, err error) {
	switch kind {
	case events.KindSpotInterruption:
		e, err := events.DecodeSpotInterruption(data)
		return one(e, interrupt.Notice{Kind: interrupt.Spot, Instance: e.Detail.InstanceID, Action: e.Detail.InstanceAction}), elsewhere(p, e), err
	case events.KindReservationInterruption:
		e, err := events.DecodeReservationInterruption(data)
		return one(e, interrupt.Notice{Kind: interrupt.Reservation, Instance: e.Detail.InstanceID, Action: e.Detail.InstanceAction,
			At: e.Detail.Termination.Time()}), elsewhere(p, e), err
	case events.KindRebalance:
		e, err := events.DecodeRebalance(data)
		return one(e, interrupt.Notice{Kind: interrupt.Rebalance, Instance: e.Detail.InstanceID}), elsewhere(p, e), err
	case events.KindStateChange:
		e, err := events.DecodeStateChange(data)
		return one(e, interrupt.Notice{Kind: stateKinds()[e.Detail.State], Instance: e.Detail.InstanceID}), p.state(e), err
	case events.KindScheduledChange:
		e, err := events.DecodeScheduledChange(data)
		return p.scheduled(e), p.change(e), err
	}
	return nil, "", fmt.Errorf("no notice is made of events of kind %s", kind)
}

func one[D any](e events.Event[D], n interrupt.Notice) []interrupt.Notice {
	n.Time = e.Time
	return []interrupt.Notice{n}
}

// elsewhere says that the event is about another account or region.
func elsewhere[D any](p Place, e events.Event[D]) string {
	switch {
	case p.Account != "" && e.Account != "" && e.Account != p.Account:
		return "it is about account " + e.Account
	case p.Region != "" && e.Region != "" && e.Region != p.Region:
		return "it is about region " + e.Region
	}
	return ""
}

func stateKinds() map[string]interrupt.Kind {
	return map[string]interrupt.Kind{"running": interrupt.Running, "stopping": interrupt.Stopping, "stopped": interrupt.Stopped,
		"shutting-down": interrupt.Ending, "terminated": interrupt.Ended}
}

func (p Place) state(e events.StateChange) string {
	if _, known := stateKinds()[e.Detail.State]; !known {
		return "state " + e.Detail.State + " means nothing to us"
	}
	return elsewhere(p, e)
}

// scheduled makes a notice for each instance, once.
func (p Place) scheduled(e events.ScheduledChange) (out []interrupt.Notice) {
	seen := map[string]bool{}
	for _, id := range e.Detail.Instances() {
		if !seen[id] {
			seen[id] = true
			out = append(out, interrupt.Notice{Kind: interrupt.Scheduled, Instance: id, Time: e.Time, At: e.Detail.StartTime.Time()})
		}
	}
	return out
}

// change says why a scheduled change concerns nobody. A copy may be delivered to another region than the one that is affected, and
// one with us as the affected region counts wherever it was delivered first (spec aws.md §6.1).
func (p Place) change(e events.ScheduledChange) string {
	if e.Detail.EventRegion != "" {
		e.Region = e.Detail.EventRegion
	}
	if why := elsewhere(p, e); why != "" {
		return why
	}
	switch {
	case e.Detail.StatusCode == "closed":
		return "it is over, or was called off"
	case len(e.Detail.Instances()) == 0:
		return "it is about no instance"
	}
	return ""
}

// Foreign remembers instances that are not ours, so that the next notice about one costs nothing. It may be used by several
// goroutines; a nil one remembers nothing.
type Foreign struct {
	mu  sync.Mutex
	ids map[string]time.Time // until when
}

// Limits of what is remembered. Instance ids are never used again.
const (
	foreignFor = time.Hour
	maxForeign = 10_000
)

func (f *Foreign) add(id string, now time.Time) {
	if f == nil {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ids == nil || len(f.ids) >= maxForeign {
		f.ids = map[string]time.Time{}
	}
	f.ids[id] = now.Add(foreignFor)
}

// without are the notices about instances that may be ours.
func (f *Foreign) without(notices []interrupt.Notice, now time.Time) []interrupt.Notice {
	if f == nil {
		return notices
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []interrupt.Notice
	for _, n := range notices {
		if !now.Before(f.ids[n.Instance]) {
			out = append(out, n)
		}
	}
	return out
}
