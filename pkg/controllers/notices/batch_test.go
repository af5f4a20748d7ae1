package notices_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"joiner.sh/events"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// stateEvent is the event that an instance has a new state.
func stateEvent(id, state string) []byte {
	return fmt.Appendf(nil, `{"version":"0","id":"1","detail-type":"EC2 Instance State-change Notification","source":"aws.ec2","account":"111122223333","time":"2026-01-01T12:00:00Z","region":"us-west-2",`+
		`"resources":["arn:aws:ec2:us-west-2:111122223333:instance/%s"],"detail":{"instance-id":"%s","state":"%s"}}`, id, id, state)
}

// TestABatchOfStateChanges: a hundred instances of others cost one question, and none when they are heard of again. A
// malformed event, or one of a state that means nothing, is nothing to try again; where the question fails all others are.
func TestABatchOfStateChanges(t *testing.T) {
	f := controllertest.RunningPods(t)
	batch := [][]byte{[]byte("{"), stateEvent("i-0abcdef0123456789", "pending")}
	for i := range 100 {
		batch = append(batch, stateEvent(fmt.Sprintf("i-0f%015x", i), "terminated"))
	}
	handle := func(p *fake.Ports, foreign *notices.ForeignInstances) []error {
		i := f.Interruption(p)
		i.Foreign = foreign
		return i.HandleBatch(context.Background(), events.KindStateChange, batch)
	}
	foreign := &notices.ForeignInstances{}
	p := f.World.Ports(fake.Fault{})
	if err := errors.Join(handle(p, foreign)...); err != nil || len(p.Calls()) != 1 {
		t.Errorf("error %v, asked %v; want one question", err, p.Calls())
	}
	p = f.World.Ports(fake.Fault{})
	if err := errors.Join(handle(p, foreign)...); err != nil || len(p.Calls()) != 0 {
		t.Errorf("once more: error %v, asked %v; want nothing", err, p.Calls())
	}
	failing := handle(f.World.Ports(fake.Fault{Call: 1}), &notices.ForeignInstances{})
	again := 0
	for _, err := range failing {
		if err != nil {
			again++
		}
	}
	if again != 100 || failing[0] != nil || failing[1] != nil {
		t.Errorf("%d of %d events come again, want the 100 about which somebody was asked", again, len(batch))
	}
}
