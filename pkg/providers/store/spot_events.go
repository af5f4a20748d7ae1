package store

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"joiner.sh/pkg/model/spotpools"
)

const (
	spotEventsName  = "joiner-spot-events" // of the data in the store
	spotEventsField = "events"             // its one entry, a JSON list
	maxSpotEvents   = 2000                 // the newest stay; an event takes about 150 bytes
	spotEventsLast  = 24 * time.Hour       // what nobody counted by then is forgotten
)

// SpotEvents keeps what happened in spot pools until it is counted. Its methods may be called concurrently.
type SpotEvents struct {
	store Store
	now   func() time.Time
}

// NewSpotEvents keeps the events in a store.
func NewSpotEvents(store Store, now func() time.Time) *SpotEvents { return &SpotEvents{store, now} }

// NoteSpotEvents adds events. Those of an ID that is there already are left out.
func (s *SpotEvents) NoteSpotEvents(ctx context.Context, events []spotpools.Event) error {
	return s.change(ctx, func(all []spotpools.Event) []spotpools.Event {
		out := slices.Clone(all)
		for _, e := range events {
			if !slices.ContainsFunc(out, func(o spotpools.Event) bool { return o.ID == e.ID }) {
				out = append(out, e)
			}
		}
		return out[max(0, len(out)-maxSpotEvents):]
	})
}

// ListSpotEvents lists the events, the oldest first. Text that is no list counts as none: the next write mends it.
func (s *SpotEvents) ListSpotEvents(ctx context.Context) ([]spotpools.Event, error) {
	all, _, err := s.read(ctx)
	return all, err
}

// ForgetSpotEvents takes those events away, and none that came meanwhile.
func (s *SpotEvents) ForgetSpotEvents(ctx context.Context, events []spotpools.Event) error {
	gone := map[string]bool{}
	for _, e := range events {
		gone[e.ID] = true
	}
	return s.change(ctx, func(all []spotpools.Event) []spotpools.Event {
		return slices.DeleteFunc(slices.Clone(all), func(e spotpools.Event) bool { return gone[e.ID] })
	})
}

// change stores what the change makes of the events, if that is something else.
func (s *SpotEvents) change(ctx context.Context, to func([]spotpools.Event) []spotpools.Event) error {
	if err := retryConflicts(ctx, func() error { return s.changeOnce(ctx, to) }); err != nil {
		return fmt.Errorf("note spot events: %w", err)
	}
	return nil
}

func (s *SpotEvents) changeOnce(ctx context.Context, to func([]spotpools.Event) []spotpools.Event) error {
	old, version, err := s.read(ctx)
	if err != nil {
		return err
	}
	next := to(old)
	if len(next) == len(old) {
		return nil
	}
	body, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	return s.store.WriteData(ctx, spotEventsName, map[string]string{spotEventsField: string(body)}, version)
}

func (s *SpotEvents) read(ctx context.Context) (all []spotpools.Event, version string, err error) {
	data, version, err := s.store.ReadData(ctx, spotEventsName)
	if err != nil {
		return nil, "", fmt.Errorf("read spot events: %w", err)
	}
	if json.Unmarshal([]byte(cmp.Or(data[spotEventsField], "[]")), &all) != nil {
		return nil, version, nil
	}
	all = slices.DeleteFunc(all, func(e spotpools.Event) bool { return s.now().Sub(e.At) > spotEventsLast })
	return all, version, nil
}
