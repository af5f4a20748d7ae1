package ledger_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner/pkg/disrupt"
	"joiner/pkg/ledger"
)

func TestNotes(t *testing.T) {
	s := &store{}
	n := ledger.NewNotes(s)
	if got, err := n.Recall(t.Context()); err != nil || got.Quiet != nil {
		t.Errorf("of nothing it recalls %+v, %v", got, err)
	}
	want := disrupt.Memory{Asked: disrupt.Asked{World: 1<<63 + 7, Sets: []uint64{3, 1<<63 + 9}}, Quiet: map[string]disrupt.Quiet{"claim-1": {Sum: 7, Since: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}}}
	if err := n.Remember(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	got, err := n.Recall(t.Context())
	if diff := cmp.Diff(want, got); diff != "" || err != nil {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	writes := s.writes
	if err := n.Remember(t.Context(), want); err != nil || s.writes != writes {
		t.Errorf("what is known already is written again (%v)", err)
	}
	if err := s.WriteData(t.Context(), "joiner-disruption", map[string]string{"memory": "no memory"}, "1"); err != nil {
		t.Fatal(err)
	}
	if got, err := n.Recall(t.Context()); err != nil || got.Quiet != nil {
		t.Errorf("of nonsense it recalls %+v, %v", got, err)
	}
}

// Five thousand nodes fit into what one ConfigMap holds.
func TestNotesOfALargeCluster(t *testing.T) {
	m := disrupt.Memory{Quiet: map[string]disrupt.Quiet{}, Stays: map[string]disrupt.Stay{}}
	for i := range 5000 {
		name := "general-" + strings.Repeat("x", 5) + time.Duration(i).String()
		m.Quiet[name] = disrupt.Quiet{Sum: uint32(i) * 2654435761, Since: time.Date(2026, 1, 1, 0, 0, i, 0, time.UTC)}
		m.Stays[name] = disrupt.Stay{Kind: "waits", Since: time.Date(2026, 1, 2, 0, 0, i, 0, time.UTC), Told: "dear", ToldAt: time.Date(2026, 1, 3, 0, i/20, 0, 0, time.UTC),
			Word: "budget", Logged: time.Date(2026, 1, 3, i%24, 0, 7, 0, time.UTC)}
	}
	s := &store{}
	if err := ledger.NewNotes(s).Remember(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	if n := len(s.data["memory"]); n == 0 || n > 512<<10 {
		t.Errorf("%d bytes", n)
	}
}
