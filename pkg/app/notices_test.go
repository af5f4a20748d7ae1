package app

import (
	"context"
	"encoding/json"
	"testing"
)

// The schedule that keeps a function in a VPC awake is no notice: nobody is asked anything, whether AWS or the cluster.
func TestTheScheduleIsNoNotice(t *testing.T) {
	a := &App{} // without a client
	for name, handle := range map[string]func(context.Context, json.RawMessage) error{"spotinterruption": a.SpotInterruption,
		"reservationinterruption": a.ReservationInterruption, "rebalance": a.Rebalance, "scheduledchange": a.ScheduledChange} {
		if err := handle(t.Context(), json.RawMessage(`{"source":"aws.scheduler","detail-type":"Scheduled Event"}`)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
