package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/metrics"
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

// Put takes what was measured. It cannot fail, but the invocation can die about it, and what it says be lost.
func (p *recordPorts) Put(records ...metrics.Record) {
	var names []string
	for _, r := range records {
		for _, v := range r.Values {
			names = append(names, v.Name)
		}
	}
	slices.Sort(names)
	_ = tryPort(context.Background(), p.caller, "put metrics", strings.Join(slices.Compact(names), " "),
		func() error { return nil })
}
