package controllers

import (
	"context"
	"slices"
	"sync"
	"time"

	"joiner/pkg/model/cluster"
	"joiner/pkg/model/metrics"
	"joiner/pkg/model/plan"
	"joiner/pkg/nodeclaim/interruption"
)

// Metrics takes what was measured. Repeating a call counts things twice, so it is called once, at the end of an
// invocation.
type Metrics interface {
	Put(records ...metrics.Record)
}

// measurements gathers what one invocation measures. The zero value is ready; it may be used by several goroutines.
type measurements struct {
	mu            sync.Mutex
	looked        bool
	unschedulable int
	asleep        int // pods that wait until a NodePool wakes
	unbound       time.Duration
	decisions     []time.Duration
	created       int
	ended         int
	disrupted     map[string]int // by reason
	hinted        bool           // the first pass of a tick beside push is over
	missed        int            // by push
}

// noteUnplaced notes how the pods without a home stand after a pass. Those that only wait until a NodePool wakes are
// counted apart: nobody is to be called for them.
func (t *measurements) noteUnplaced(s cluster.Snapshot, u []plan.Unplaced, asleep map[string]bool, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.looked, t.unschedulable, t.asleep, t.unbound = true, 0, 0, 0
	without := map[string]bool{}
	for _, p := range u {
		without[p.Pod] = true
	}
	for _, p := range s.Pods {
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

// noteMissedHints notes what the first pass of a tick found that push had not announced.
func (t *measurements) noteMissedHints(h PushHints, now time.Time, times []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hinted && !h.Since.IsZero() {
		t.hinted, t.missed = true, h.countMissed(now, times)
	}
}

// noteNothingPending notes a pass that found no pod without a home.
func (t *measurements) noteNothingPending() {
	t.noteUnplaced(cluster.Snapshot{}, nil, nil, time.Time{})
}

// noteLaunched notes a claim that has an instance now, and how long its pods waited for that.
func (t *measurements) noteLaunched(s cluster.Snapshot, pods []string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created++
	for _, p := range s.Pods {
		if !p.Virtual && slices.Contains(pods, p.Key()) {
			t.decisions = append(t.decisions, now.Sub(p.Created))
		}
	}
}

// noteAction notes an action that was carried out.
func (t *measurements) noteAction(a plan.Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Do {
	case plan.ReleaseClaim:
		t.ended++
	case plan.DeleteClaim:
		t.noteDeleted(a.Reason)
	}
}

// gaveUp notes a claim that was deleted outside of lifecycle.
func (t *measurements) gaveUp(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.noteDeleted(reason)
}

func (t *measurements) noteDeleted(reason string) {
	if t.disrupted == nil {
		t.disrupted = map[string]int{}
	}
	t.disrupted[reason]++
}

// putMetrics hands over what was measured, and begins anew.
func (t *measurements) putMetrics(to Metrics) {
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
	if t.created > 0 {
		slices.Sort(t.decisions)
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsCreated, t.created),
			metrics.Durations(metrics.DecisionTime, t.decisions...))
	}
	if t.ended > 0 {
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsEnded, t.ended))
	}
	if t.hinted {
		r.Values = append(r.Values, metrics.Total(metrics.PushMissed, t.missed))
	}
	records := []metrics.Record{r}
	for _, reason := range sortedKeys(t.disrupted) {
		records = append(records, metrics.Record{By: []metrics.Tag{{Key: "reason", Value: reason}},
			Values: []metrics.Value{metrics.Total(metrics.ClaimsDisrupt, t.disrupted[reason])}})
	}
	to.Put(records...)
	t.looked, t.decisions, t.created, t.ended, t.disrupted = false, nil, 0, 0, nil
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// measureFleet says how the fleet stands. What cannot be read now is read by the next refresh.
func (r *Refresh) measureFleet(ctx context.Context) error {
	if r.Metrics == nil {
		return nil
	}
	claims, err := r.Pools.ListClaims(ctx)
	if err != nil {
		return err
	}
	c, _, err := r.Prices.ReadCatalog(ctx)
	if err != nil {
		return err
	}
	r.Metrics.Put(metrics.FleetMetrics(claims, c, r.Now())...)
	return nil
}

// measureNotice counts a notice that was handled, and the claim that it condemned. What EC2 takes back soon is measured
// by how long that took since EC2 said so. A state is no notice: there is one for every instance that comes or goes.
func (i *Interruption) measureNotice(n interruption.Notice, o interruption.Outcome) {
	if i.Metrics == nil {
		return
	}
	reason := string(n.Kind)
	r := metrics.Record{}
	switch n.Kind {
	case interruption.Running:
	case interruption.Stopping, interruption.Stopped:
		reason = string(interruption.Stopped)
	case interruption.Ending, interruption.Ended:
		reason = string(interruption.Ended)
	default:
		r.Values = append(r.Values, metrics.Total(metrics.Notices, 1))
	}
	if o.Condemn {
		r.Values = append(r.Values, metrics.Total(metrics.ClaimsDisrupt, 1))
	}
	r.By = []metrics.Tag{{Key: "reason", Value: reason}}
	i.Metrics.Put(r)
	if n.Urgent() {
		i.Metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Durations(metrics.NoticeHandled,
			max(0, i.Now().Sub(n.Time)))}})
	}
}
