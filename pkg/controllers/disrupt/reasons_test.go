package disrupt

import (
	"bytes"
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
)

// stayed plays passes a minute apart in which nodes stay for the words given, and returns what each told.
func stayed(t *testing.T, minutes int, words func(minute int) []string) (told [][]string, logged []int) {
	t.Helper()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	var before map[string]disruption.Retention
	for minute := range minutes {
		var all []disruption.NotDisrupted
		for i, word := range words(minute) {
			all = append(all, disruption.NotDisrupted{Claim: fmt.Sprintf("c%04d", i), Reason: disruption.IneligibleReason(word), Why: "why " + word})
		}
		said := &bytes.Buffer{}
		var heard []string
		hear := recorderFunc(func(e cluster.Event) {
			if e.Kind == "NodeClaim" {
				heard = append(heard, e.Name+" "+e.Reason+": "+e.Message)
			}
		})
		c := &Controller{Deps: controllers.Deps{Record: hear, Now: func() time.Time { return now }, Log: slog.New(slog.NewTextHandler(said, nil))}}
		before = updateRetention(all, before, now)
		logStays(c.Log, all, before, now)
		(&commandApplier{d: c}).recordReasons(controllers.BeginPass(t.Context(), nil), all, before)
		told = append(told, heard)
		logged = append(logged, strings.Count(said.String(), "\n"))
		now = now.Add(time.Minute)
	}
	return told, logged
}

// A reason that does not pass by itself is told at once; a budget, a time to wait and the like once they have lasted
// for ten minutes, and each again before the API server forgets it.
func TestWhenANodeTellsWhyItStays(t *testing.T) {
	for _, c := range []struct {
		name  string
		words func(minute int) string
		want  map[int]string // by minute
	}{
		{"a policy", func(int) string { return "policy" }, map[int]string{0: "Unconsolidatable: why policy", 55: "Unconsolidatable: why policy", 110: "Unconsolidatable: why policy"}},
		{"a budget", func(int) string { return "budget" }, map[int]string{10: "DisruptionBlocked: why budget", 65: "DisruptionBlocked: why budget", 120: "DisruptionBlocked: why budget"}},
		{"one of several that pass", func(m int) string { return []string{"budget", "consolidate-after", "other-command-in-progress"}[m%3] }, map[int]string{10: "Unconsolidatable: why consolidate-after", 65: "Unconsolidatable: why other-command-in-progress", 120: "DisruptionBlocked: why budget"}},
		{"to and fro", func(m int) string { return []string{"no-cheaper-alternative", "budget"}[m/2%2] }, map[int]string{0: "Unconsolidatable: why no-cheaper-alternative", 56: "Unconsolidatable: why no-cheaper-alternative", 112: "Unconsolidatable: why no-cheaper-alternative"}},
		{"a budget that closes", func(m int) string { return map[bool]string{true: "no-cheaper-alternative", false: "budget"}[m < 30] },
			map[int]string{0: "Unconsolidatable: why no-cheaper-alternative", 40: "DisruptionBlocked: why budget", 95: "DisruptionBlocked: why budget"}},
		{"a report", func(int) string { return "reported" }, map[int]string{0: "DisruptionReported: why reported", 55: "DisruptionReported: why reported", 110: "DisruptionReported: why reported"}},
		{"what others tell of", func(int) string { return "leaving" }, map[int]string{}},
	} {
		told, _ := stayed(t, 121, func(m int) []string { return []string{c.words(m)} })
		got := map[int]string{}
		for m, list := range told {
			for _, e := range list {
				got[m] += strings.TrimPrefix(e, "c0000 ")
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
	}
}

// Of 1,500 nodes twenty are told of in a pass, every one of them within an hour and a quarter, and none twice before
// all have been; each has one line in the log, and another an hour later.
func TestManyNodesThatStayDoNotFlood(t *testing.T) {
	words := make([]string, 1500)
	for i := range words {
		words[i] = "budget"
	}
	told, logged := stayed(t, 90, func(int) []string { return words })
	times := map[string]int{}
	for m, list := range told {
		if want := 20; m >= 10 && len(list) != want || m < 10 && len(list) != 0 {
			t.Fatalf("minute %d: %d nodes were told of, want %d", m, len(list), want)
		}
		for _, e := range list {
			times[e]++
		}
		if m == 84 && len(times) != 1500 {
			t.Errorf("%d of 1500 nodes were told of in 75 minutes", len(times))
		}
	}
	want := make([]int, 90)
	for i := range 15 { // a hundred in one pass
		want[i], want[60+i] = 100, 100
	}
	if diff := cmp.Diff(want, logged); diff != "" {
		t.Errorf("lines of the log by minute (-want +got):\n%s", diff)
	}
}

// When the clock is set back nothing is told twice an hour for ever, nor silent for longer.
func TestStaysWhenTheClockIsSetBack(t *testing.T) {
	later := time.Date(2026, 1, 1, 9, 0, 0, 0, time.UTC)
	now := later.Add(-8 * time.Hour)
	all := []disruption.NotDisrupted{{Claim: "a", Reason: "budget"}}
	got := updateRetention(all, map[string]disruption.Retention{"a": {Kind: "waits", Since: later, Told: "waits", ToldAt: later, Reason: "budget", Logged: later}}, now)
	if !got["a"].Since.Equal(now) || !worthTelling("waits", got["a"], now) {
		t.Errorf("it stays since %v and is not told of", got["a"].Since)
	}
	said := &bytes.Buffer{}
	if logStays(slog.New(slog.NewTextHandler(said, nil)), all, got, now); said.Len() == 0 || !got["a"].Logged.Equal(now) {
		t.Errorf("it is not logged: %v", got["a"])
	}
}

// Of many nodes that are protected every one is told of in a few minutes, twenty in each.
func TestManyProtectedNodesTakeTurns(t *testing.T) {
	var all []disruption.NotDisrupted
	for i := range 45 {
		all = append(all, disruption.NotDisrupted{Claim: fmt.Sprintf("c%02d", i), Node: fmt.Sprintf("n%02d", i), Reason: "pdb", Why: "it is covered"})
	}
	heard := map[string]bool{}
	for minute := range 3 {
		told := 0
		m := &commandApplier{d: &Controller{Deps: controllers.Deps{Record: recorderFunc(func(e cluster.Event) { told++; heard[e.Name] = true })}}}
		m.s.Now = time.Date(2026, 1, 1, 0, minute, 0, 0, time.UTC)
		if m.recordNotDisrupted(controllers.BeginPass(t.Context(), nil), all); told != 20 {
			t.Errorf("minute %d: %d nodes were told of, want 20", minute, told)
		}
	}
	if len(heard) != 45 {
		t.Errorf("%d of 45 nodes were told of in three minutes", len(heard))
	}
}

// A proposal is told once, and of one about many nodes twenty are told.
func TestProposalsAreToldOnce(t *testing.T) {
	var many []string
	for i := range 30 {
		many = append(many, fmt.Sprintf("m%02d", i))
	}
	p := disruption.Plan{Proposed: []disruption.Command{{Reason: v1.DisruptionUnderutilized, Claims: []string{"old"}}, {Reason: v1.DisruptionEmpty, Claims: []string{"empty"}},
		{Reason: v1.DisruptionUnderutilized, Claims: many}}, Withdrawn: []disruption.WithdrawnProposal{{Reason: v1.DisruptionUnderutilized, Claims: []string{"last"}}}}
	var heard []string
	m := &commandApplier{d: &Controller{Deps: controllers.Deps{Record: recorderFunc(func(e cluster.Event) { heard = append(heard, e.Name) })}}}
	m.recordConsidered(controllers.BeginPass(t.Context(), nil), p, []disruption.Proposal{{Reason: v1.DisruptionUnderutilized, Claims: []string{"old"}}})
	if diff := cmp.Diff(many[:20], heard); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// The policy Balanced is told on the node that goes alone, and where several go on every pool that has it.
func TestWhereBalancedIsTold(t *testing.T) {
	claim := func(pool string) cluster.Claim { return cluster.Claim{Pool: pool} }
	pool := func(name, policy string) cluster.Pool {
		return cluster.Pool{Name: name, Disruption: cluster.Disruption{Policy: policy}}
	}
	for _, c := range []struct {
		claims []string
		reason v1.DisruptionReason
		want   string
	}{
		{[]string{"a1"}, v1.DisruptionUnderutilized, "NodeClaim a1"},
		{[]string{"a1", "a2"}, v1.DisruptionUnderutilized, "NodePool a"},
		{[]string{"a1", "b1", "c1"}, v1.DisruptionUnderutilized, "NodePool a,NodePool b"},
		{[]string{"c1"}, v1.DisruptionUnderutilized, ""},
		{[]string{"a1"}, v1.DisruptionDrifted, ""},
	} {
		var heard []string
		m := &commandApplier{d: &Controller{Deps: controllers.Deps{Record: recorderFunc(func(e cluster.Event) {
			if e.Reason == "ConsolidationApproved" && strings.HasPrefix(e.Message, "the policy Balanced lets it go: Underutilized: ") {
				heard = append(heard, e.Kind+" "+e.Name)
			}
		})}},
			s:      cluster.Snapshot{Pools: []cluster.Pool{pool("a", "Balanced"), pool("b", "Balanced"), pool("c", "WhenEmptyOrUnderutilized")}},
			claims: map[string]cluster.Claim{"a1": claim("a"), "a2": claim("a"), "b1": claim("b"), "c1": claim("c")}}
		m.recordBalancedApproval(controllers.BeginPass(t.Context(), nil), disruption.Command{Reason: c.reason, Claims: c.claims})
		if got := strings.Join(heard, ","); got != c.want {
			t.Errorf("%v for %s: told on %q, want %q", c.claims, c.reason, got, c.want)
		}
	}
}

type recorderFunc func(cluster.Event)

func (r recorderFunc) RecordEvent(_ context.Context, e cluster.Event) error { r(e); return nil }

// Every reason for which a node is not disrupted has an event, or says that others tell of it.
func TestEveryReasonHasItsEvent(t *testing.T) {
	file, err := parser.ParseFile(token.NewFileSet(), "../../disruption/ineligible.go", nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	events := reasonEvents()
	declared := 0
	ast.Inspect(file, func(n ast.Node) bool {
		if v, ok := n.(*ast.ValueSpec); ok {
			declared += len(v.Names)
		}
		return true
	})
	if declared != len(events) || declared < 30 {
		t.Errorf("%d reasons are declared, and %d have an event", declared, len(events))
	}
}
