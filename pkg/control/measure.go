package control

import (
	"context"
	"slices"
	"sync"
	"time"

	"joiner/pkg/cluster"
	"joiner/pkg/interrupt"
	"joiner/pkg/metric"
	"joiner/pkg/plan"
)

// Metrics takes what was measured. Repeating a call counts things twice, so it is called once, at the end of an invocation.
type Metrics interface {
	Put(records ...metric.Record)
}

// tally gathers what one invocation measures. The zero value is ready; it may be used by several goroutines.
type tally struct {
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

// unplaced notes how the pods without a home stand after a pass. Those that only wait until a NodePool wakes are counted apart: nobody
// is to be called for them.
func (t *tally) unplaced(s cluster.Snapshot, u []plan.Unplaced, asleep map[string]bool, now time.Time) {
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

// found notes what the first pass of a tick found that push had not announced.
func (t *tally) found(h Hints, now time.Time, times []time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.hinted && !h.Since.IsZero() {
		t.hinted, t.missed = true, h.missed(now, times)
	}
}

// nothing notes a pass that found no pod without a home.
func (t *tally) nothing() { t.unplaced(cluster.Snapshot{}, nil, nil, time.Time{}) }

// launched notes a claim that has an instance now, and how long its pods waited for that.
func (t *tally) launched(s cluster.Snapshot, pods []string, now time.Time) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.created++
	for _, p := range s.Pods {
		if !p.Virtual && slices.Contains(pods, p.Key()) {
			t.decisions = append(t.decisions, now.Sub(p.Created))
		}
	}
}

// did notes an action that was carried out.
func (t *tally) did(a plan.Action) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch a.Do {
	case plan.ReleaseClaim:
		t.ended++
	case plan.DeleteClaim:
		t.condemned(a.Reason)
	}
}

// gaveUp notes a claim that was deleted outside of lifecycle.
func (t *tally) gaveUp(reason string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.condemned(reason)
}

func (t *tally) condemned(reason string) {
	if t.disrupted == nil {
		t.disrupted = map[string]int{}
	}
	t.disrupted[reason]++
}

// put hands over what was measured, and begins anew.
func (t *tally) put(to Metrics) {
	if to == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	r := metric.Record{}
	if t.looked {
		r.Values = append(r.Values, metric.Gauge(metric.Unschedulable, float64(t.unschedulable)), metric.Durations(metric.Unbound, t.unbound))
	}
	if t.asleep > 0 { // a metric costs where it is written, and few pools sleep
		r.Values = append(r.Values, metric.Gauge(metric.Asleep, float64(t.asleep)))
	}
	if t.created > 0 {
		slices.Sort(t.decisions)
		r.Values = append(r.Values, metric.Total(metric.ClaimsCreated, t.created), metric.Durations(metric.DecisionTime, t.decisions...))
	}
	if t.ended > 0 {
		r.Values = append(r.Values, metric.Total(metric.ClaimsEnded, t.ended))
	}
	if t.hinted {
		r.Values = append(r.Values, metric.Total(metric.PushMissed, t.missed))
	}
	records := []metric.Record{r}
	for _, reason := range sortedKeys(t.disrupted) {
		records = append(records, metric.Record{By: []metric.Tag{{Key: "reason", Value: reason}},
			Values: []metric.Value{metric.Total(metric.ClaimsDisrupt, t.disrupted[reason])}})
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

// measure says how the fleet stands. What cannot be read now is read by the next refresh.
func (r *Refresh) measure(ctx context.Context) error {
	if r.Metrics == nil {
		return nil
	}
	claims, err := r.Pools.Claims(ctx)
	if err != nil {
		return err
	}
	c, _, err := r.Prices.Catalog(ctx)
	if err != nil {
		return err
	}
	r.Metrics.Put(metric.Fleet(claims, c, r.Now())...)
	return nil
}

// measure counts a notice that was handled, and the claim that it condemned (spec aws.md §6.2). What EC2 takes back soon is measured by how
// long that took since EC2 said so. A state is no notice: there is one for every instance that comes or goes.
func (i *Interruption) measure(n interrupt.Notice, o interrupt.Outcome) {
	if i.Metrics == nil {
		return
	}
	reason := string(n.Kind)
	r := metric.Record{}
	switch n.Kind {
	case interrupt.Running:
	case interrupt.Stopping, interrupt.Stopped:
		reason = string(interrupt.Stopped)
	case interrupt.Ending, interrupt.Ended:
		reason = string(interrupt.Ended)
	default:
		r.Values = append(r.Values, metric.Total(metric.Notices, 1))
	}
	if o.Condemn {
		r.Values = append(r.Values, metric.Total(metric.ClaimsDisrupt, 1))
	}
	r.By = []metric.Tag{{Key: "reason", Value: reason}}
	i.Metrics.Put(r)
	if n.Urgent() {
		i.Metrics.Put(metric.Record{Values: []metric.Value{metric.Durations(metric.NoticeHandled, max(0, i.Now().Sub(n.Time)))}})
	}
}
