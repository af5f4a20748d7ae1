package awsemulator

import (
	"slices"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// power is the part of EC2 that stops and starts instances.
type power struct{ *account }

// StopInstance stops an instance behind the back of whoever launched it. It can be terminated or started from then on.
func (c *power) StopInstance(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.instances.machineByID(id)
	if err == nil && m.State == "running" {
		c.stopMachine(m)
	}
	return err
}

// StartStopped starts a stopped instance behind the back of whoever launched it.
func (c *power) StartStopped(id string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.instances.machineByID(id)
	if err == nil && m.State == "stopped" {
		c.startMachine(m)
	}
	return err
}

// ChangeType makes a stopped instance one of another type, as ModifyInstanceAttribute does.
func (c *power) ChangeType(id, name string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.instances.machineByID(id)
	switch {
	case err != nil:
		return err
	case m.State != "stopped":
		return wire.Fail(400, "IncorrectInstanceState", "The instance '%s' is not in the 'stopped' state.", id)
	}
	m.Type = name
	return nil
}

// stopMachine shuts an instance down that keeps its volumes and its private address, and gives its public one back. The
// account is locked.
func (c *power) stopMachine(m *machine) {
	m.stopTimers()
	m.State, m.StateReason = "stopping", "Client.UserInitiatedShutdown"
	c.instances.notifyState(m)
	c.instances.runAfter(m, c.opt.StopFor, func() {
		m.State, m.PublicIP = "stopped", ""
		c.instances.notifyState(m)
	})
}

// startMachine boots a stopped instance, with another public address if it had one. The account is locked.
func (c *power) startMachine(m *machine) {
	m.stopTimers()
	m.State, m.StateReason, m.Launched = "pending", "", time.Now()
	m.PublicIP = c.networks.vpc.publicAddress(m)
	c.instances.notifyState(m)
	c.instances.runAfter(m, c.opt.StartFor, func() {
		m.State = "running"
		c.instances.notifyState(m)
	})
}

type stopInput struct {
	InstanceID []string `query:"InstanceId"`
	Force      bool
	Hibernate  bool
}

// stopInstances is all or nothing. One that is stopped already is no error.
func (c *power) stopInstances(r *call, in *stopInput) (any, error) {
	return c.changeStates(r, in.InstanceID, func(m *machine) error {
		switch {
		case !slices.Contains([]string{"running", "stopping", "stopped"}, m.State):
			return wire.Fail(400, "IncorrectInstanceState", "The instance '%s' is not in a state from which it can be stopped.", m.ID)
		case m.CapacityType == spot:
			return wire.Fail(400, "UnsupportedOperation", "You can't stop the Spot Instance '%s' because it is associated with a one-time Spot Instance request. You can only stop Spot Instances associated with persistent Spot Instance requests.", m.ID)
		}
		return m.stopProtected()
	}, func(m *machine) {
		if m.State == "running" {
			c.stopMachine(m)
		}
	})
}

type startInput struct {
	InstanceID     []string `query:"InstanceId"`
	AdditionalInfo string
}

// startInstances is all or nothing. One that runs already is no error. A stopped instance has no claim to capacity: it
// is refused like a launch when its offering is unavailable, whatever else lives there.
func (c *power) startInstances(r *call, in *startInput) (any, error) {
	return c.changeStates(r, in.InstanceID, func(m *machine) error {
		switch {
		case !slices.Contains([]string{"pending", "running", "stopped"}, m.State):
			return wire.Fail(400, "IncorrectInstanceState", "The instance '%s' is not in a state from which it can be started.", m.ID)
		case m.State != "stopped":
			return nil
		}
		if limit, ok := c.offerings.capacityLimit(m.CapacityType, m.Type, m.Zone); ok && limit.Limit >= 0 {
			running := 0
			for _, other := range c.instances.machines {
				if other.isLiving() && other.State != "stopped" && other.Type == m.Type && other.Zone == m.Zone &&
					other.CapacityType == m.CapacityType {
					running++
				}
			}
			if running >= limit.Limit {
				return insufficientCapacity(limit.Code, m.Type, m.Zone)
			}
		}
		return nil
	}, func(m *machine) {
		if m.State == "stopped" {
			c.startMachine(m)
		}
	})
}

// changeStates checks all instances and then changes all.
func (c *power) changeStates(r *call, ids []string, check func(*machine) error, change func(*machine)) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(ids) == 0 {
		return nil, wire.Fail(400, "MissingParameter", "The request must contain the parameter InstanceId")
	}
	found, err := c.instances.findInstances(ids, nil, page{})
	if err != nil {
		return nil, err
	}
	for _, m := range found {
		if err := check(m); err != nil {
			return nil, err
		}
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	var out struct {
		Changes []xmlStateChange `xml:"instancesSet>item"`
	}
	for _, id := range ids {
		m := c.instances.machines[id]
		before := stateOf(m.State)
		change(m)
		out.Changes = append(out.Changes, xmlStateChange{id, stateOf(m.State), before})
	}
	return out, nil
}
