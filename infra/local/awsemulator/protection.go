package awsemulator

import (
	"joiner.sh/infra/local/awsemulator/wire"
)

// protection is what keeps an instance from being ended or stopped by calls. Stop protection keeps it from being ended
// too, whatever the other says.
type protection struct{ end, stop bool }

type modifyInstanceInput struct {
	InstanceID            string        `query:"InstanceId"`
	DisableAPITermination *attributeBit `query:"DisableApiTermination"`
	DisableAPIStop        *attributeBit `query:"DisableApiStop"`
}

type attributeBit struct{ Value bool }

// modifyInstanceAttribute sets the protection of an instance. Other attributes are not modelled. A spot instance takes
// none.
func (c *power) modifyInstanceAttribute(r *call, in *modifyInstanceInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m, err := c.instances.machineByID(in.InstanceID)
	if err != nil {
		return nil, err
	}
	if m.CapacityType == spot {
		return nil, wire.Fail(400, "UnsupportedOperation",
			"The attribute cannot be modified for the Spot Instance '%s'.", m.ID)
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	if in.DisableAPITermination != nil {
		m.protected.end = in.DisableAPITermination.Value
	}
	if in.DisableAPIStop != nil {
		m.protected.stop = in.DisableAPIStop.Value
	}
	return struct {
		Return bool `xml:"return"`
	}{true}, nil
}

// endProtected is the refusal of a call that ends a protected instance among others, and the zones in which it ends
// none: EC2 ends those of the other zones, and refuses the call all the same. The account is locked.
func (c *instances) endProtected(ids []string) (zones map[string]bool, failure error) {
	zones = map[string]bool{}
	for _, id := range ids {
		m := c.machines[id]
		attribute := ""
		switch {
		case m.State == "terminated" || m.State == "shutting-down":
		case m.protected.stop:
			attribute = "disableApiStop"
		case m.protected.end:
			attribute = "disableApiTermination"
		}
		if attribute == "" {
			continue
		}
		zones[m.Zone] = true
		failure = wire.Fail(400, "OperationNotPermitted", "The instance '%s' may not be terminated. Modify its '%s' "+
			"instance attribute and try again.", id, attribute)
	}
	return zones, failure
}

// stopProtected is the refusal of a call that stops a protected instance.
func (m *machine) stopProtected() error {
	if !m.protected.stop {
		return nil
	}
	return wire.Fail(400, "OperationNotPermitted", "The instance '%s' may not be stopped. Modify its 'disableApiStop' "+
		"instance attribute and try again.", m.ID)
}
