package events

// Rebalance is the recommendation to leave a spot instance that EC2 is likelier than usual to take back. It is best
// effort, can come at any time before the interruption warning or together with it, and can be repeated.
type Rebalance = Event[RebalanceDetail]

// RebalanceDetail names the instance.
type RebalanceDetail struct {
	InstanceID string `json:"instance-id"`
}

// DecodeRebalance reads the event. An error means that the event is malformed or of another kind: it will not get
// better when it is tried again.
func DecodeRebalance(data []byte) (Rebalance, error) {
	e, err := decodeEvent[RebalanceDetail](data, "aws.ec2", "EC2 Instance Rebalance Recommendation")
	if err != nil {
		return e, err
	}
	return e, checkInstance(e.ID, e.Detail.InstanceID)
}
