package events

import (
	"fmt"
	"slices"
	"strings"
)

// StateChange says that an instance of the account, ours or not, came into another state.
type StateChange = Event[StateChangeDetail]

// StateChangeDetail names the instance and its new state, in lower case.
type StateChangeDetail struct {
	InstanceID string `json:"instance-id"`
	State      string `json:"state"` // pending, running, stopping, stopped, shutting-down or terminated
}

// DecodeStateChange reads the event. An error means that the event is malformed, of another kind, or names a state that
// EC2 does not have: it will not get better when it is tried again.
func DecodeStateChange(data []byte) (StateChange, error) {
	e, err := decodeEvent[StateChangeDetail](data, "aws.ec2", "EC2 Instance State-change Notification")
	if err != nil {
		return e, err
	}
	e.Detail.State = strings.ToLower(e.Detail.State)
	if !slices.Contains([]string{"pending", "running", "stopping", "stopped", "shutting-down", "terminated"},
		e.Detail.State) {
		return e, fmt.Errorf("decode event %q: %q is no state of an instance", e.ID, e.Detail.State)
	}
	return e, checkInstance(e.ID, e.Detail.InstanceID)
}
