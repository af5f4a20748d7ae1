package disruption

import (
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
)

// What was answered with no is not asked again: whether that is remembered or not, the decision is the same, and so is
// every reason. Between passes, in turn, nothing changes, a node drifts, time goes by, a pod ends, nodes have more
// room, and a pod must not be disrupted any more. In every other world nodes take pods of consolidated nodes only once
// their own have been the same for a minute.
func TestMemoryChangesNothing(t *testing.T) {
	remembered, acted := 0, 0
	for seed := range uint64(24) {
		w := grown(t, seed)
		w.Snapshot.Rules.ConsolidationMaxEvaluations = 1 << 20
		w.consolidateLater(seed)
		for pass := range 40 {
			bare := w.memory
			bare.Search = SearchState{}
			want, _ := Next(w.Snapshot, bare, w.Market)
			if known := w.memory.Search.Done; known {
				remembered++
			}
			p := w.next()
			if diff := cmp.Diff(want.Lines(), p.Lines()); diff != "" {
				t.Fatalf("seed %d, pass %d (-forgetful +remembering):\n%s", seed, pass, diff)
			}
			acted += len(p.Begin)
			w.act(p)
			w.initialize()
			w.provision()
			w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
			w.disturb(pass)
		}
	}
	if remembered < 120 || acted < 20 {
		t.Errorf("%d passes remembered an answer, %d commands: too little to test anything", remembered, acted)
	}
}

// What a cache keeps from pass to pass, answers of questions among it and commands that are only reported, changes no
// decision either.
func TestACacheChangesNothing(t *testing.T) {
	begun, recalled := 0, 0
	for seed := range uint64(24) {
		w := grown(t, seed)
		w.consolidateLater(seed)
		w.Snapshot.Rules.ReportDisruption = seed%3 == 2
		var cache Cache
		for pass := range 24 {
			before := cache.reported.inputs
			p, _ := NextFrom(w.Snapshot, w.memory, w.Market, &cache)
			if before != 0 && before == cache.reported.inputs && len(p.Reported) > 0 {
				recalled++
			}
			want := w.next()
			if diff := cmp.Diff(want, p); diff != "" {
				t.Fatalf("seed %d, pass %d (-without +with):\n%s", seed, pass, diff)
			}
			begun += len(want.Begin)
			w.act(want)
			w.initialize()
			w.provision()
			w.Snapshot.Now = w.Snapshot.Now.Add(20 * time.Second)
			w.disturb(pass)
		}
	}
	if begun < 15 || recalled < 30 {
		t.Errorf("%d commands begun, %d recalled: too little to test anything", begun, recalled)
	}
}

// consolidateLater has pools wait for a minute, in every other world.
func (w *world) consolidateLater(seed uint64) {
	for i := range w.Snapshot.Pools {
		w.Snapshot.Pools[i].Disruption.After = time.Duration(seed%2) * time.Minute
	}
}

// disturb changes a little, in every fourth pass and the first of each sixteen.
func (w *world) disturb(pass int) {
	s := &w.Snapshot
	switch pass % 16 {
	case 1:
		if c := len(s.Claims) / 2; len(s.Claims) > 0 {
			s.Claims[c].Conditions = append(slices.Clone(s.Claims[c].Conditions), cluster.Condition{Type: v1.ConditionDrifted, Status: "True", Since: s.Now})
		}
	case 3:
		s.Now = s.Now.Add(time.Hour)
	case 7:
		if len(s.Pods) > 0 {
			s.Pods = s.Pods[:len(s.Pods)-1]
		}
	case 11:
		for i := range s.Nodes {
			s.Nodes[i].Allocatable.CPU += 1000
		}
	case 15:
		if len(s.Pods) > 0 {
			s.Pods[0].DoNotDisrupt = "true"
		}
	}
}
