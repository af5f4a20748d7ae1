package provision

import (
	"context"
	"time"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

// noCapacity is the code of a refusal that is about the pool itself.
const noCapacity = "InsufficientInstanceCapacity"

// noteRefusals notes for the record of spot pools which of them had no capacity, once an hour for each. A note that
// cannot be made changes what nodes cost later, and nothing else.
func noteRefusals(ctx context.Context, p *Controller, marks []instancetypes.UnavailableOffering) {
	if p.Spot == nil {
		return
	}
	now := p.Now()
	var events []spotpools.Event
	for _, m := range marks {
		if m.CapacityType != instancetypes.Spot || m.Type == "" || m.Zone == "" || m.Scope != "" ||
			m.Why != noCapacity {
			continue
		}
		events = append(events, spotpools.Event{Kind: spotpools.Refusal,
			Pool: spotpools.Pool{Type: m.Type, Zone: m.Zone},
			ID:   m.Type + " " + m.Zone + " " + now.UTC().Truncate(time.Hour).Format(time.RFC3339), At: now})
	}
	if len(events) == 0 {
		return
	}
	if err := p.Spot.NoteSpotEvents(ctx, events); err != nil {
		p.Log.Warn("refusals are missing in the record of spot pools", "error", err)
	}
}
