package events

// Tick is what a schedule sends; resources names the rule.
type Tick = Event[TickDetail]

// TickDetail is empty: a tick says only that time has passed.
type TickDetail struct{}

// DecodeTick reads the event. The scheduled functions do the same whatever wakes them, so none of them needs to call
// it.
func DecodeTick(data []byte) (Tick, error) {
	return decode[TickDetail](data, "aws.events", "Scheduled Event")
}
