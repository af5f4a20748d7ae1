package events

// SpotInterruption is the notice that EC2 takes a spot instance back, in most cases two minutes later.
type SpotInterruption = Event[SpotInterruptionDetail]

// SpotInterruptionDetail names the instance and what happens to it.
type SpotInterruptionDetail struct {
	InstanceID     string `json:"instance-id"`
	InstanceAction string `json:"instance-action"` // terminate, stop or hibernate
}

// DecodeSpotInterruption reads the event. An error means that the event is malformed or of another kind: it will not
// get better when it is tried again.
func DecodeSpotInterruption(data []byte) (SpotInterruption, error) {
	e, err := decodeEvent[SpotInterruptionDetail](data, "aws.ec2", "EC2 Spot Instance Interruption Warning")
	if err != nil {
		return e, err
	}
	return e, checkInstance(e.ID, e.Detail.InstanceID)
}
