package controllers

import (
	"maps"
	"slices"
	"sync"
	"time"

	"joiner.sh/pkg/model/cluster"
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
	leftOut := 0
	for _, entry := range s.Unavailable {
		if entry.LeavesOut() {
			leftOut++
		}
	}
	t.leftOut = max(t.leftOut, leftOut)
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
	placed := map[string]bool{}
	for _, l := range launched {
		for _, pod := range l.Pods {
			placed[pod] = true
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created += len(launched)
	for i := range s.Pods {
		if p := &s.Pods[i]; len(placed) > 0 && !p.Virtual && p.NodeName == "" && placed[p.Key()] {
			t.decisions = append(t.decisions, now.Sub(p.Created))
		}
	}
}

// NoteAction notes an action that was carried out.
func (t *Measurements) NoteAction(a plan.Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Do {
	case plan.ReleaseClaim:
		t.ended++
	case plan.DeleteClaim:
		t.noteDeleted(a.Reason)
	}
}

// NoteGivenUp notes a claim that was deleted outside of lifecycle.
func (t *Measurements) NoteGivenUp(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteDeleted(reason)
}

func (t *Measurements) noteDeleted(reason string) {
	if t.disrupted == nil {
		t.disrupted = map[string]int{}
	}
	t.disrupted[reason]++
}

// PutMetrics hands over what was measured, and begins anew.
func (t *Measurements) PutMetrics(to Metrics) {
	if to == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := metrics.Record{}
	if t.looked {
		r.Values = append(r.Values, metrics.Gauge(metrics.Unschedulable, float64(t.unschedulable)),
			metrics.Durations(metrics.Unbound, t.unbound))
	}
	if t.asleep > 0 { // a metric costs where it is written, and few pools sleep
		r.Values = append(r.Values, metrics.Gauge(metrics.Asleep, float64(t.asleep)))
	}
	if t.leftOut > 0 {
		r.Values = append(r.Values, metrics.Gauge(metrics.TypesLeftOut, float64(t.leftOut)))
	}
	if t.held > 0 {
		r.Values = append(r.Values, metrics.Gauge(metrics.CeilingHeld, float64(t.held)))
	}
	if t.created > 0 {
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsCreated, t.created))
	}
	if len(t.decisions) > 0 {
		slices.Sort(t.decisions)
		r.Values = append(r.Values, metrics.Durations(metrics.DecisionTime, t.decisions...))
	}
	if t.ended > 0 {
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsEnded, t.ended))
	}
	if t.hinted {
		r.Values = append(r.Values, metrics.Total(metrics.PushMissed, t.missed))
	}
	records := []metrics.Record{r}
	for _, reason := range slices.Sorted(maps.Keys(t.disrupted)) {
		records = append(records, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: reason}},
			Values: []metrics.Value{metrics.Total(metrics.ClaimsDisrupt, t.disrupted[reason])}})
	}
	to.Put(records...)
	t.looked, t.decisions, t.created, t.ended, t.disrupted, t.held = false, nil, 0, 0, nil, 0
}
