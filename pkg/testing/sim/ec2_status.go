package sim

import (
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// Times of status checks.
const (
	checkLag   = time.Minute     // EC2 checks once a minute, and so shows what is new
	soundAfter = 2 * time.Minute // how long a check must have failed before anybody acts on it
)

// statusFailure is a status check that fails.
type statusFailure struct {
	since, until time.Time // until is zero while it goes on
	system       bool      // of the host
	showAt       time.Time
}

// interruptInstance is an interruption: the warning, and two minutes later the end.
func (e *ec2) interruptInstance(m *machine) {
	kind := EventReservation
	if m.CapacityType == instancetypes.Spot {
		kind = EventSpot
	}
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.taken, m.dies = true, true, time.Now().Add(2*time.Minute)
	e.addTrace("EC2 takes %s back in two minutes", m.ID)
	e.lambda.emitEvent(Event{Kind: kind, Instance: m.ID})
	e.runAfter(2*time.Minute, func() { e.endInstance(m, "EC2") })
}

// announceChange is a scheduled change of an instance: it is stopped at that date, if it still runs. Its status says
// so, and mostly an event.
func (e *ec2) announceChange(m *machine, in time.Duration) {
	if m.Gone() || m.noticed {
		return
	}
	m.noticed, m.dies = true, time.Now().Add(in)
	m.change, m.changeShows = m.dies.Truncate(time.Second), time.Now().Add(e.drawDuration(0, checkLag))
	e.addTrace("EC2 will stop %s in %s", m.ID, in)
	if e.drawChance(0.4) {
		e.addTrace("AWS Health does not say so")
	} else {
		e.lambda.emitEvent(Event{Kind: EventHealth, Instance: m.ID, From: m.change})
	}
	e.runAfter(in, func() {
		if !m.change.IsZero() {
			e.stopInstance(m, "EC2", "")
		}
	})
}

// impairInstance has an instance fail a status check, for good or for a while. Some go on working all the same.
func (e *ec2) impairInstance(m *machine) {
	if m.Gone() || m.State != "running" || !m.ill.since.IsZero() {
		return
	}
	m.ill = statusFailure{since: e.toSecond(), system: e.drawChance(0.5),
		showAt: time.Now().Add(e.drawDuration(0, checkLag))}
	e.addTrace("instance %s fails a status check", m.ID)
	if e.drawChance(0.3) {
		e.runAfter(e.drawDuration(10*time.Second, 4*time.Minute), func() {
			m.ill.until = time.Now()
			e.addTrace("instance %s passes its status checks again", m.ID)
		})
		return
	}
	if e.drawChance(0.4) {
		e.addTrace("the kubelet of %s is dead", m.ID)
		e.kubelets.silenceMachine(m)
	}
}

// isUnsound reports whether the instance fails a check, or did, for so long that it may be ended by force. Who decides
// so may have been told a while ago.
func (e *ec2) isUnsound(m *machine) bool {
	until := m.ill.until
	if until.IsZero() {
		until = time.Now()
	}
	return !m.ill.since.IsZero() && !until.Before(m.ill.since.Add(soundAfter-e.plan.skew-late))
}

// isUrgent reports whether what the status of the instance says must have its claim marked for deletion, or
// annotated, by whoever is told.
func (e *ec2) isUrgent(m *machine) bool {
	lasting := !m.ill.since.IsZero() && m.ill.until.IsZero() && !time.Now().Before(m.ill.showAt) &&
		!time.Now().Before(m.ill.since.Add(soundAfter+e.plan.skew+time.Second))
	dated := !m.change.IsZero() && !time.Now().Before(m.changeShows)
	return m.State == "running" && (lasting || dated)
}

// callOff takes the date of an instance back, as EC2 does.
func (e *ec2) callOff(m *machine) {
	if m.change.IsZero() {
		return
	}
	m.change, m.noticed, m.calledOff = time.Time{}, false, time.Now()
	e.addTrace("EC2 leaves %s alone after all", m.ID)
}
