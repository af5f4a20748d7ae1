package sim

import (
	"context"
	"fmt"

	"joiner/pkg/model/cluster"
)

// recordPorts take what is told of decisions.
type recordPorts struct{ *caller }

// RecordEvent records an event.
func (p *recordPorts) RecordEvent(ctx context.Context, e cluster.Event) error {
	return tryPort(ctx, p.caller, "write event", fmt.Sprintf("%s %s %s: %s", e.Kind, e.Name, e.Reason, e.Message),
		func() error {
			p.observe(eventRecorded{e})
			return nil
		})
}
