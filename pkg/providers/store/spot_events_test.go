package store_test

import (
	"fmt"
	"testing"
	"time"

	"joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/providers/store"
)

func spotEvent(id string, at time.Time) spotpools.Event {
	return spotpools.Event{ID: id, Kind: spotpools.Interruption, Pool: spotpools.Pool{Type: "c6a.large", Zone: "b"}, At: at}
}

func eventIDs(t *testing.T, s *store.SpotEvents) string {
	t.Helper()
	all, err := s.ListSpotEvents(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for _, e := range all {
		out += e.ID + " "
	}
	return out
}

func TestSpotEventsStayUntilTheyAreForgotten(t *testing.T) {
	clock := start()
	s := store.NewSpotEvents(&fakeStore{}, clock.now)
	for _, id := range []string{"a", "b", "a"} {
		if err := s.NoteSpotEvents(t.Context(), []spotpools.Event{spotEvent(id, clock.now())}); err != nil {
			t.Fatal(err)
		}
	}
	if got := eventIDs(t, s); got != "a b " {
		t.Errorf("noted are %q", got)
	}
	if err := s.ForgetSpotEvents(t.Context(), []spotpools.Event{spotEvent("a", clock.now())}); err != nil {
		t.Fatal(err)
	}
	if got := eventIDs(t, s); got != "b " {
		t.Errorf("after one was forgotten: %q", got)
	}
	clock.pass(25 * time.Hour)
	if got := eventIDs(t, s); got != "" {
		t.Errorf("a day later, counted by nobody: %q", got)
	}
}

func TestSpotEventsAreBounded(t *testing.T) {
	clock := start()
	s := store.NewSpotEvents(&fakeStore{}, clock.now)
	var many []spotpools.Event
	for k := range 2100 {
		many = append(many, spotEvent(fmt.Sprint(k), clock.now()))
	}
	if err := s.NoteSpotEvents(t.Context(), many); err != nil {
		t.Fatal(err)
	}
	all, err := s.ListSpotEvents(t.Context())
	if err != nil || len(all) != 2000 || all[1999].ID != "2099" {
		t.Errorf("%d events (%v), want the newest 2000", len(all), err)
	}
}
