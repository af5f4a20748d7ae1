package replay_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/instancetypes/builtin"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/provisioning"
	"joiner.sh/pkg/rollout"
	"joiner.sh/pkg/scheduling/binpack"
	"joiner.sh/pkg/testing/scenario"
)

func stamp() decisionlog.PassStamp {
	return decisionlog.PassStamp{Cluster: "demo", Version: "7", Invocation: "r-1", Mode: "observe"}
}

// stored is the pass after it was written and read.
func stored(t *testing.T, of decisionlog.Pass) decisionlog.Pass {
	t.Helper()
	b, err := of.Encode()
	if err != nil {
		t.Fatal(err)
	}
	again, err := of.Encode()
	if err != nil || !bytes.Equal(b, again) {
		t.Fatalf("the same pass gives other bytes, %v", err)
	}
	out, err := decisionlog.DecodePass(b)
	if err != nil {
		t.Fatal(err)
	}
	record, err := decisionlog.DecodeRecord(b)
	if diff := cmp.Diff(out.Record, record); diff != "" || err != nil {
		t.Fatalf("the record at the beginning (-whole +beginning):\n%s%v", diff, err)
	}
	return out
}

// world is a random cluster that buys from the built-in catalog.
func world(t *testing.T, seed uint64) cluster.Snapshot {
	t.Helper()
	w, err := scenario.Random(seed)
	if err != nil {
		t.Fatal(err)
	}
	s := w.Snapshot
	if s.Catalog, err = instancetypes.DecodeCatalog(builtin.Data()); err != nil {
		t.Fatal(err)
	}
	s.Catalog.Types = slices.DeleteFunc(s.Catalog.Types, func(f instancetypes.Facts) bool {
		return !strings.HasPrefix(f.Name, "m5.") && !strings.HasPrefix(f.Name, "c6g.")
	})
	s.Classes, s.Rules.PackingIterations = nil, 20
	seen := map[string]bool{}
	for i, p := range s.Pools {
		s.Pools[i].Ready, s.Pools[i].Message = true, ""
		if !seen[p.Class] {
			class := instancetypes.DefaultClass(s.Catalog)
			class.Name = p.Class
			s.Classes = append(s.Classes, class)
		}
		seen[p.Class] = true
	}
	return s
}

// A stored pass gives the same plan byte for byte, whatever the cluster is like.
func TestReplayGivesTheSamePlan(t *testing.T) {
	launches := 0
	for seed := range uint64(60) {
		s := world(t, seed)
		p := provisioning.Decide(s).Plan
		launches += len(p.Launches)
		of, err := replay.ProvisionPass(stamp(), s, p)
		if err != nil {
			t.Fatal(err)
		}
		again, err := replay.DecideAgain(stored(t, of))
		if err != nil || !again.Same {
			t.Fatalf("seed %d: %v\n%s", seed, err, cmp.Diff(again.Was, again.Lines))
		}
		of, err = replay.DisruptPass(stamp(), s, disruption.Memory{}, next(s))
		if err != nil {
			t.Fatal(err)
		}
		if again, err = replay.DecideAgain(stored(t, of)); err != nil || !again.Same {
			t.Fatalf("seed %d: %v\n%s", seed, err, cmp.Diff(again.Was, again.Lines))
		}
	}
	if launches < 100 {
		t.Errorf("%d launches prove nothing", launches)
	}
}

// What 1.0.0-rc.1 stored of learned spot pools is not read: such a pass is decided as if none had been learned.
func TestReplayOfLearnedSpotPools(t *testing.T) {
	s := world(t, 1)
	of, err := replay.ProvisionPass(stamp(), s, provisioning.Decide(s).Plan)
	if err != nil {
		t.Fatal(err)
	}
	b, err := of.Encode()
	if err != nil {
		t.Fatal(err)
	}
	zr, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(zr)
	if err != nil {
		t.Fatal(err)
	}
	for at, with := range map[string]string{
		`"catalog":{`: `"spot":{"at":"2026-11-20T10:00:00Z","own":[{"type":"m5.large","zone":"a","hours":41,"interruptions":3}],"others":[{"type":"m5.large","zone":"b","hours":9}]},`,
		`"rules":{`:   `"podInterruptionCostUSD":0.012,`,
	} {
		if bytes.Count(text, []byte(at)) != 1 {
			t.Fatalf("the stored pass has no place for %s in %s", with, at)
		}
		text = bytes.Replace(text, []byte(at), []byte(at+with), 1)
	}
	old, err := decisionlog.DecodePass(text)
	if err != nil {
		t.Fatal(err)
	}
	again, err := replay.DecideAgain(old)
	if err != nil || !again.Same || len(again.Lines) == 0 {
		t.Errorf("%v\n%s", err, cmp.Diff(again.Was, again.Lines))
	}
	old.Plan = bytes.ReplaceAll(old.Plan, []byte(`"price":`), []byte(`"riskUSD":0.001,"hazard":0.02,"price":`))
	if again, err = replay.DecideAgain(old); err != nil || again.Same || !slices.Equal(again.Was, again.Lines) {
		t.Errorf("a plan that has the hazards: same %t, %v\n%s", again.Same, err, cmp.Diff(again.Was, again.Lines))
	}
}

// A step of a NodeRollout is decided again from what the pass found, and one that is decided otherwise now is told.
func TestReplayOfRollouts(t *testing.T) {
	s := world(t, 1)
	s.Classes[0].Hash, s.Classes[0].Ready, s.Classes[0].Images = "2", true, []instancetypes.Image{{ID: "ami-2"}}
	var pools []string
	for i := range s.Pools {
		s.Pools[i].Class = s.Classes[0].Name
		pools = append(pools, s.Pools[i].Name)
	}
	before := cluster.RolloutStatus{Phase: cluster.RolloutHealthy, Revision: "old", LastGood: "old"}
	r := cluster.Rollout{Name: "canary", Pools: pools, Steps: []cluster.RolloutStep{{Nodes: 2}}, ReadyWithin: time.Minute, MinPods: 5,
		Status: before, Alarms: []cluster.Alarm{{Name: "errors", State: "OK"}}}
	s.Rollouts = []cluster.Rollout{r}
	r.Status, r.Before = rollout.Advance(s, r).Status, &before
	s.Rollouts = []cluster.Rollout{r}
	of, err := replay.DisruptPass(stamp(), s, disruption.Memory{}, next(s))
	if err != nil {
		t.Fatal(err)
	}
	if len(of.Rollouts) != 1 || !strings.HasPrefix(of.Rollouts[0], "NodeRollout canary: Progressing at step 0, revision ") || !of.HasDecision() {
		t.Errorf("the record has %q", of.Rollouts)
	}
	pass := stored(t, of)
	if again, err := replay.DecideAgain(pass); err != nil || !again.Same || again.Lines[0] != of.Rollouts[0] {
		t.Errorf("same %t, error %v: %s", again.Same, err, cmp.Diff(again.Was, again.Lines))
	}
	pass.Saw.Rollouts[0].Status.Allowed = 3
	if again, err := replay.DecideAgain(pass); err != nil || again.Same || again.Was[0] == again.Lines[0] {
		t.Errorf("same %t, error %v, was %q, is %q", again.Same, err, again.Was, again.Lines)
	}
}

func next(s cluster.Snapshot) disruption.Plan {
	p, _ := disruption.Next(s, disruption.Memory{}, binpack.ResolveOfferings(s))
	return p
}

// Another snapshot gives another plan, and the replay says so.
func TestReplayThatDiffers(t *testing.T) {
	s := world(t, 1)
	of, err := replay.ProvisionPass(stamp(), s, plan.Plan{Launches: provisioning.Decide(s).Plan.Launches, Skipped: []plan.Skip{{Pool: "ghost", Why: "boo"}}})
	if err != nil {
		t.Fatal(err)
	}
	again, err := replay.DecideAgain(stored(t, of))
	if err != nil || again.Same || !strings.Contains(strings.Join(again.Was, "\n"), "skip pool ghost: boo") || strings.Contains(strings.Join(again.Lines, "\n"), "ghost") {
		t.Errorf("same %t, %v, was %v, is %v", again.Same, err, again.Was, again.Lines)
	}
}

func TestKeys(t *testing.T) {
	at := time.Date(2026, 11, 22, 1, 2, 3, 456e6, time.UTC)
	of, err := replay.ProvisionPass(stamp(), cluster.Snapshot{Now: at}, plan.Plan{})
	if err != nil {
		t.Fatal(err)
	}
	key := of.Key()
	if !strings.HasPrefix(key, "passes/2026/11/22/01/20261122T010203.456Z-provision-") || !strings.HasPrefix(key, decisionlog.HourPrefix(at)+"/") {
		t.Error(key)
	}
	if got, ok := decisionlog.KeyTime(key); !ok || !got.Equal(at) {
		t.Errorf("time of the key: %s, %t", got, ok)
	}
	if _, ok := decisionlog.KeyTime("catalog.json.gz"); ok {
		t.Error("the catalog is no pass")
	}
	if of.HasDecision() {
		t.Error("an empty plan is no decision")
	}
}

func TestRecordIsALineOfALog(t *testing.T) {
	var p plan.Plan
	for range 1000 {
		p.Launches = append(p.Launches, plan.Launch{Pool: "p", Pods: make([]string, 500)})
		p.Unplaced = append(p.Unplaced, plan.Unplaced{Pod: "a/b", Why: []string{strings.Repeat("x", 10_000)}})
	}
	of, err := replay.ProvisionPass(stamp(), cluster.Snapshot{}, p)
	if err != nil {
		t.Fatal(err)
	}
	if len(of.Launches) != 100 || of.More != 900 || len(of.Launches[0].Names) != 5 || of.Unplaced[0].Count != 1000 || len(of.Unplaced[0].Why) > 310 {
		t.Errorf("%d launches, %d more, %+v", len(of.Launches), of.More, of.Unplaced)
	}
}

func TestPassesThatCannotBeRead(t *testing.T) {
	for text, want := range map[string]string{
		"":                                       "its record: EOF",
		"{}":                                     "schema is 0, this version reads 2",
		`{"schema": 2, "function": "x"}`:         `function "x" is not known`,
		`{"schema": 2, "function": "provision"}`: "what it saw: EOF",
		"\x1f\x8bx":                              "unexpected EOF",
	} {
		if _, err := decisionlog.DecodePass([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
