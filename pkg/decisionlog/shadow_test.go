package decisionlog_test

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/decisionlog"
)

// The pods of one burst wait in three passes until somebody else's nodes come: they are launched for once. A proposal
// saves for as long as passes go on.
func TestShadow(t *testing.T) {
	start := time.Date(2026, 11, 22, 1, 0, 0, 0, time.UTC)
	at := func(minutes int, function string, nodes int, usd float64, change func(*decisionlog.Record)) decisionlog.Record {
		r := decisionlog.Record{Schema: 1, Time: start.Add(time.Duration(minutes) * time.Minute), PassStamp: decisionlog.PassStamp{Function: function, Mode: "observe"},
			Fleet: decisionlog.Fleet{Foreign: nodes, AllUSD: usd}}
		change(&r)
		return r
	}
	burst := func(r *decisionlog.Record) {
		r.Launches = []decisionlog.Launch{{HourlyUSD: 0.1, Pods: 2, Names: []string{"a/1", "a/2"}}, {HourlyUSD: 0.2, Pods: 1, Names: []string{"a/3"}}}
	}
	propose := func(r *decisionlog.Record) {
		r.Removals = []decisionlog.DisruptionStage{{Stage: "propose", Claims: []string{"c1", "c2"}, SavesUSD: 0.6}, {Stage: "undo", Claims: []string{"c9"}, SavesUSD: 9}}
	}
	nothing := func(*decisionlog.Record) {}
	got := decisionlog.ShadowOf([]decisionlog.Record{
		at(0, "provision", 4, 1, burst), at(1, "provision", 4, 1, burst), at(2, "provision", 7, 1.9, burst),
		at(10, "disrupt", 7, 1.9, propose), at(15, "disrupt", 7, 1.9, propose),
		at(20, "provision", 6, 1.6, nothing), at(70, "provision", 6, 1.6, nothing),
	}, time.Hour)
	want := []decisionlog.ComparisonSpan{
		{Start: start, Nodes: 6, HourlyUSD: 1.6, Launches: 2, LaunchUSD: 0.3, Grown: 3, GrownUSD: 0.9, Removals: 2, SavesUSD: 0.6, Difference: -1.2},
		{Start: start.Add(time.Hour), Nodes: 6, HourlyUSD: 1.6},
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got.Spans, near); diff != "" {
		t.Errorf("spans (-want +got):\n%s", diff)
	}
	// Ten minutes from 1:10 to 1:20, then five more until the proposal of 1:15 is ten minutes old.
	if got.Passes != 7 || got.Acted != 0 || math.Abs(got.SavedUS-0.6*15/60) > 1e-9 || got.Total.Launches != 2 || got.Total.Grown != 3 {
		t.Errorf("%+v", got)
	}
	if none := decisionlog.ShadowOf(nil, time.Hour); none.Passes != 0 || none.Spans != nil {
		t.Errorf("%+v", none)
	}
}
