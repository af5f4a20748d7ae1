package controllers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/model/plan"
)

// Measurements gathers what one invocation measures. The zero value is ready; it may be used by several goroutines.
type Measurements struct {
	mu            sync.Mutex
	looked        bool
	unschedulable int
	asleep        int // pods that wait until a NodePool wakes
	leftOut       int // types and classes whose nodes were bought in vain
	held          int // launches that the ceiling of the cluster did not allow, in the pass with the most
	unbound       time.Duration
	decisions     []time.Duration
	created       int
	ended         int
	disrupted     map[string]int // by reason
	hinted        bool           // the first pass of a tick beside push is over
	missed        int            // by push
}

// NoteUnschedulable notes how the pods without a node stand after a pass. Those that only wait until a NodePool wakes
// are counted apart: nobody is to be called for them.
func (t *Measurements) NoteUnschedulable(s cluster.Snapshot, u []plan.Unplaced, asleep map[string]bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.unschedulable, t.asleep, t.unbound = true, 0, 0, 0
	t.leftOut = max(t.leftOut, lists.Count(s.Unavailable, instancetypes.UnavailableOffering.LeavesOut))
	without := lists.Set(u, func(p plan.Unplaced) string { return p.Pod })
	for i := range s.Pods {
		p := &s.Pods[i]
		switch {
		case p.Virtual || !without[p.Key()]:
		case asleep[p.Key()]:
			t.asleep++
		default:
			t.unschedulable++
			t.unbound = max(t.unbound, now.Sub(p.Created))
		}
	}
}

// NoteHeld notes the launches of a pass that the ceiling of the cluster did not allow.
func (t *Measurements) NoteHeld(held []plan.Held) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := 0
	for _, h := range held {
		n += h.Nodes
	}
	t.held = max(t.held, n)
}

// NoteMissedHints notes what the first pass of a tick found that push had not announced.
func (t *Measurements) NoteMissedHints(h PushHints, now time.Time, times []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hinted && !h.Since.IsZero() {
		t.hinted, t.missed = true, h.countMissed(now, times)
	}
}

// NoteNothingPending notes a pass that found no pod without a node.
func (t *Measurements) NoteNothingPending() {
	t.NoteUnschedulable(cluster.Snapshot{}, nil, nil, time.Time{})
}

// NoteLaunched notes launches that have instances now, and how long pods without a node waited for that. Pods that run
// on a node that goes away do not wait.
func (t *Measurements) NoteLaunched(s cluster.Snapshot, launched []plan.Launch, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created += len(launched)
	for _, made := range LaunchedFor(s, launched) {
		t.decisions = append(t.decisions, now.Sub(made))
	}
}

// LaunchedFor returns the creation times of the pods without a node that the launches are for.
func LaunchedFor(s cluster.Snapshot, launches []plan.Launch) (made []time.Time) {
	placed := map[string]bool{}
	for _, l := range launches {
		for _, pod := range l.Pods {
			placed[pod] = true
		}
	}
	for i := range s.Pods {
		if p := &s.Pods[i]; len(placed) > 0 && !p.Virtual && p.NodeName == "" && placed[p.Key()] {
			made = append(made, p.Created)
		}
	}
	return made
}

// NoteAction notes an action that was carried out.
func (t *Measurements) NoteAction(a plan.Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Do {
	case plan.ReleaseClaim:
		t.ended++
	case plan.DeleteClaim:
		if t.disrupted == nil {
			t.disrupted = map[string]int{}
		}
		t.disrupted[a.Reason]++
	}
}

// NoteGivenUp notes a claim that was deleted outside of lifecycle.
func (t *Measurements) NoteGivenUp(reason string) {
	t.NoteAction(plan.Action{Do: plan.DeleteClaim, Reason: reason})
}

// PutMetrics hands over what was measured, and begins anew.
func (t *Measurements) PutMetrics(to Metrics) {
	if to == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := metrics.Record{}
	put := func(is bool, values ...metrics.Value) {
		if is {
			r.Values = append(r.Values, values...)
		}
	}
	put(t.looked, metrics.Gauge(metrics.Unschedulable, float64(t.unschedulable)),
		metrics.Durations(metrics.Unbound, t.unbound))
	// a metric costs where it is written, and few pools sleep
	put(t.asleep > 0, metrics.Gauge(metrics.Asleep, float64(t.asleep)))
	put(t.leftOut > 0, metrics.Gauge(metrics.TypesLeftOut, float64(t.leftOut)))
	put(t.held > 0, metrics.Gauge(metrics.CeilingHeld, float64(t.held)))
	put(t.created > 0, metrics.Total(metrics.ClaimsCreated, t.created))
	slices.Sort(t.decisions)
	put(len(t.decisions) > 0, metrics.Durations(metrics.DecisionTime, t.decisions...))
	put(t.ended > 0, metrics.Total(metrics.ClaimsEnded, t.ended))
	put(t.hinted, metrics.Total(metrics.PushMissed, t.missed))
	records := []metrics.Record{r}
	for _, reason := range slices.Sorted(maps.Keys(t.disrupted)) {
		records = append(records, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: reason}},
			Values: []metrics.Value{metrics.Total(metrics.ClaimsDisrupt, t.disrupted[reason])}})
	}
	to.Put(records...)
	t.looked, t.decisions, t.created, t.ended, t.disrupted, t.held = false, nil, 0, 0, nil, 0
}
