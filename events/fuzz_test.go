package events_test

import (
	"regexp"
	"testing"

	"joiner.sh/events"
)

// Whatever somebody puts on the bus: it is refused, or names instances by ids that are ids.
func FuzzDecode(f *testing.F) {
	for _, k := range []events.Kind{events.KindSpotInterruption, events.KindRebalance, events.KindStateChange,
		events.KindScheduledChange, events.KindReservationInterruption, events.KindDeployed} {
		all, err := k.Samples()
		if err != nil {
			f.Fatal(err)
		}
		for _, text := range all {
			f.Add(text)
		}
	}
	f.Add([]byte(`{"source":"aws.ec2","detail-type":"EC2 Instance State-change Notification","detail":{"instance-id":"i-1\n","state":"terminated"},"resources":null}`))
	id := regexp.MustCompile(`^i-[0-9a-f]{8,17}$`)
	f.Fuzz(func(t *testing.T, text []byte) {
		if e, err := events.DecodeStateChange(text); err == nil && !id.MatchString(e.Detail.InstanceID) {
			t.Errorf("state change of %q: %q", e.Detail.InstanceID, text)
		}
		if e, err := events.DecodeSpotInterruption(text); err == nil && !id.MatchString(e.Detail.InstanceID) {
			t.Errorf("spot interruption of %q: %q", e.Detail.InstanceID, text)
		}
		if e, err := events.DecodeRebalance(text); err == nil && !id.MatchString(e.Detail.InstanceID) {
			t.Errorf("rebalance of %q: %q", e.Detail.InstanceID, text)
		}
		_, _ = events.DecodeScheduledChange(text)
		_, _ = events.DecodeReservationInterruption(text)
		_, _ = events.DecodeDeployed(text)
	})
}
