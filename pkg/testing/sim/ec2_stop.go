package sim

import (
	"context"
	"strings"
	"time"

	"joiner.sh/pkg/model/instancetypes"
)

// EC2's words for why an instance is stopped.
const (
	stoppedByUser  = "Client.UserInitiatedShutdown: User initiated shutdown"
	stoppedForWant = "Server.InsufficientInstanceCapacity: Insufficient capacity to satisfy instance request"
)

// stopInstance stops an instance without ending it.
func (e *ec2) stopInstance(m *machine, by, reason string) {
	if m.Gone() || m.State == "stopping" || m.State == "stopped" {
		return
	}
	e.addTrace("instance %s is stopped by %s", m.ID, by)
	m.endedBy, m.StateReason = by, reason
	e.enterState(m, "stopping")
	e.kubelets.silenceMachine(m)
	boot := m.boots
	e.runAfter(e.drawDuration(5*time.Second, 40*time.Second), func() {
		if m.State == "stopping" && m.boots == boot {
			e.enterState(m, "stopped")
		}
	})
}

// restartInstance starts a stopped instance. What its kubelet was told at its launch holds again.
func (e *ec2) restartInstance(m *machine, by string) {
	e.addTrace("instance %s is started by %s", m.ID, by)
	m.boots++
	m.endedBy, m.node, m.restarted, m.Launched = "", nil, time.Now(), e.toSecond()
	e.changeState(m, "pending", "")
	boot, took := m.boots, e.plan.powerOn+e.drawDuration(3*time.Second, 12*time.Second)
	fails := e.troubleChance(e.plan.failsStart)
	if !fails && e.troubleChance(e.plan.slowStart) {
		took = e.drawDuration(time.Minute, 8*time.Minute)
	}
	e.runAfter(took, func() {
		switch {
		case m.State != "pending" || m.boots != boot:
		case fails:
			e.addTrace("instance %s has not started", m.ID)
			m.StateReason = stoppedForWant
			e.enterState(m, "stopped")
		default:
			e.enterState(m, "running")
			e.kubelets.bootMachine(m, 0)
		}
	})
}

// StopInstances stops instances, which keep their claims.
func (p *fleetPorts) StopInstances(ctx context.Context, ids []string) error {
	return tryPort(ctx, p.caller, "stop", strings.Join(ids, " "), func() error {
		for _, id := range ids {
			if m, ok := p.ec2.machines[id]; ok && m.State == "running" {
				p.observe(instanceStopped{p.inv, m})
				p.countMutation("stop")
				p.ec2.stopInstance(m, "joiner", stoppedByUser)
			}
		}
		return nil
	})
}

// notStartableError says that an instance is gone, or in no state to be started from.
type notStartableError struct{}

func (notStartableError) Error() string { return "IncorrectInstanceState" }

// NotStartable reports true, for the controllers to ask.
func (notStartableError) NotStartable() bool { return true }

// StartInstance starts a stopped instance, where EC2 has the capacity.
func (p *fleetPorts) StartInstance(ctx context.Context, id string, o instancetypes.OfferingKey) error {
	return tryPort(ctx, p.caller, "start instance", id, func() error {
		m := p.ec2.machines[id]
		switch {
		case m == nil || m.Gone() || m.State == "stopping":
			p.inv.refuseStart()
			return notStartableError{}
		case m.State != "stopped":
			return nil
		case p.ec2.scarce[o]:
			p.inv.refuseStart()
			return &instancetypes.NoCapacityError{Unavailable: []instancetypes.UnavailableOffering{{OfferingKey: o,
				Why: "InsufficientInstanceCapacity"}}}
		}
		p.observe(instanceRestarted{p.inv, m})
		p.countMutation("start")
		p.ec2.restartInstance(m, "joiner")
		return nil
	})
}

// refuseStart remembers when EC2 refused the invocation a start first.
func (i *invocation) refuseStart() {
	if i.refused.IsZero() {
		i.refused = time.Now()
	}
}
