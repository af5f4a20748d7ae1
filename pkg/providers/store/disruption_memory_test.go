package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/providers/store"
)

func TestNotes(t *testing.T) {
	s := &fakeStore{}
	n := store.NewDisruptionMemory[disruption.Memory](s)
	if got, err := n.ReadMemory(t.Context()); err != nil || got.Quiet != nil {
		t.Errorf("of nothing it recalls %+v, %v", got, err)
	}
	want := disruption.Memory{Search: disruption.SearchState{World: 1<<63 + 7, Sets: []uint64{3, 1<<63 + 9}}, Quiet: map[string]disruption.PodStability{"claim-1": {Sum: 7, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	if err := n.WriteMemory(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := n.ReadMemory(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	writes := s.writes
	if err := n.WriteMemory(t.Context(), want); err != nil || s.writes != writes {
		t.Errorf("what is known already is written again (%v)", err)
	}
	if err := s.WriteData(t.Context(), "joiner-disruption", map[string]string{"memory": "no memory"}, "1"); err != nil {
		t.Fatal(err)
	}
	if got, err := n.ReadMemory(t.Context()); err != nil || got.Quiet != nil {
		t.Errorf("of nonsense it recalls %+v, %v", got, err)
	}
}

// Five thousand nodes fit into what one ConfigMap holds.
func TestNotesOfALargeCluster(t *testing.T) {
	m := disruption.Memory{Quiet: map[string]disruption.PodStability{}, Retained: map[string]disruption.Retention{}}
	for i := range 5000 {
		name := "general-" + strings.Repeat("x", 5) + time.Duration(i).String()
		m.Quiet[name] = disruption.PodStability{Sum: uint32(i) * 2654435761, Since: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)}
		m.Retained[name] = disruption.Retention{Kind: "waits", Since: time.Date(2026, 1, 2, 0, 0, i, 0, time.UTC), Told: "dear", ToldAt: time.Date(2026, 1, 3, 0, i/20, 0, 0, time.UTC),
			Reason: disruption.IneligibleOtherCommand, Logged: time.Date(2026, 1, 3, i%24, 0, 7, 0, time.UTC)}
	}
	s := &fakeStore{}
	if err := store.NewDisruptionMemory[disruption.Memory](s).WriteMemory(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if n := len(s.data["memory"]); n == 0 || n > 512<<10 {
		t.Errorf("%d bytes", n)
	}
}
