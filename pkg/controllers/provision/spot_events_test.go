package provision

import (
	"context"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/spotpools"
)

type notedRefusals struct{ all []spotpools.Event }

func (n *notedRefusals) NoteSpotEvents(_ context.Context, events []spotpools.Event) error {
	n.all = append(n.all, events...)
	return nil
}

func TestRefusalsOfSpotPoolsAreNotedOnceAnHour(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 20, 0, 0, time.UTC)
	noted := &notedRefusals{}
	p := &Controller{Deps: controllers.Deps{Now: func() time.Time { return now }}, Spot: noted}
	mark := func(capacity, typ, scope, why string) instancetypes.UnavailableOffering {
		return instancetypes.UnavailableOffering{Offer: instancetypes.Offer{CapacityType: capacity, Type: typ, Zone: "a"}, Scope: scope, Why: why}
	}
	marks := []instancetypes.UnavailableOffering{mark("spot", "m5.large", "", noCapacity), mark("on-demand", "m5.large", "", noCapacity),
		mark("spot", "", "", noCapacity), mark("spot", "c5.large", "", "VcpuLimitExceeded"), mark("spot", "c5.large", "pg-1", noCapacity)}
	noteRefusals(t.Context(), p, marks)
	noteRefusals(t.Context(), p, marks)
	if len(noted.all) != 2 || noted.all[0].Kind != spotpools.Refusal || noted.all[0].Pool != (spotpools.Pool{Type: "m5.large", Zone: "a"}) ||
		noted.all[0].ID != noted.all[1].ID {
		t.Errorf("noted are %+v, want the spot pool that has no capacity, twice under one ID", noted.all)
	}
	now = now.Add(time.Hour)
	if noteRefusals(t.Context(), p, marks); noted.all[2].ID == noted.all[0].ID {
		t.Error("an hour later it is the same refusal")
	}
	p.Spot = nil
	noteRefusals(t.Context(), p, marks)
}
