package events

// ReservationInterruption is the notice that the owner of an interruptible capacity reservation takes it back, two
// minutes before the instance ends.
type ReservationInterruption = Event[ReservationInterruptionDetail]

// ReservationInterruptionDetail names the instance, what happens to it and when.
type ReservationInterruptionDetail struct {
	InstanceID     string `json:"instance-id"`
	InstanceAction string `json:"instance-action"`
	Termination    When   `json:"instance-termination-time"` // zero if it is not said
	ZoneID         string `json:"azId"`
}

// DecodeReservationInterruption reads the event, under either of the two names it has had. An error means that the
// event is malformed or of another kind: it will not get better when it is tried again.
func DecodeReservationInterruption(data []byte) (ReservationInterruption, error) {
	e, err := decodeEvent[ReservationInterruptionDetail](data, "aws.ec2",
		"EC2 Capacity Reservation Instance Interruption Warning",
		"EC2 Interruptible Capacity Reservation Instance Interruption Warning")
	if err != nil {
		return e, err
	}
	return e, checkInstance(e.ID, e.Detail.InstanceID)
}
