package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
)

// measureRounds measures a case several times, and keeps the rows of the round in the middle by its last CreateFleet:
// other work on the machine makes single walls what they are. Where a round fails those before it count.
func (m *measured) measureRounds(ctx context.Context, measure func(context.Context) error) (err error) {
	before := len(m.rows)
	var rounds [][]row
	for range m.rounds {
		if err = measure(ctx); err != nil {
			break
		}
		rounds = append(rounds, slices.Clone(m.rows[before:]))
		m.rows = m.rows[:before]
	}
	m.rows = append(m.rows[:before], middleRound(rounds)...)
	return err
}

// middleRound is the round whose last CreateFleet is the median. Its row of all functions notes those of all rounds,
// its others the most memory and what ended badly in any.
func middleRound(rounds [][]row) []row {
	if len(rounds) == 0 {
		return nil
	}
	last := func(round []row) float64 { return round[len(round)-1].LastFleet }
	slices.SortStableFunc(rounds, func(a, b []row) int { return cmp.Compare(last(a), last(b)) })
	middle := rounds[len(rounds)/2]
	together := &middle[len(middle)-1]
	for i, r := range rounds {
		together.Rounds = append(together.Rounds, last(r))
		if i != len(rounds)/2 {
			addWorst(middle, r)
		}
	}
	return middle
}

// addWorst adds to the rows of functions what must not be overlooked in another round.
func addWorst(to, other []row) {
	for _, o := range other {
		at := slices.IndexFunc(to, func(r row) bool { return r.Function == o.Function })
		if at < 0 || o.Function == "" {
			continue
		}
		r := &to[at]
		r.PeakMB = max(r.PeakMB, o.PeakMB)
		r.TimedOut, r.Killed, r.Failed = r.TimedOut+o.TimedOut, r.Killed+o.Killed, r.Failed+o.Failed
	}
}

const (
	bookmarks   = "a bookmark of the API server"
	ofBookmarks = 20                    // that are measured
	apart       = 50 * time.Millisecond // so that they cover a tick of the API server's, which is a second
	toBookmark  = 3 * time.Second       // the shortest watch that ends in one
)

// measureBookmarks measures how long a watch that tells nothing takes to say that it has got to a revision which was
// read after it was known up to an older one: a pass that launches waits for that.
func (m *measured) measureBookmarks(ctx context.Context) error {
	known, err := m.podRevision(ctx)
	if err != nil {
		return err
	}
	waits := make([]float64, ofBookmarks)
	if err := forEach(ctx, ofBookmarks, func(ctx context.Context, i int) (err error) {
		if err := waitFor(ctx, time.Duration(i+1)*apart); err != nil {
			return err
		}
		waits[i], err = m.awaitBookmark(ctx, known)
		return err
	}); err != nil {
		return err
	}
	slices.Sort(waits)
	m.rows = append(m.rows, row{Case: bookmarks, Waits: waits})
	m.say(fmt.Sprintf("%s takes %.1f to %.1f s", bookmarks, waits[0], waits[ofBookmarks-1]))
	return nil
}

// awaitBookmark reads the revision, watches pods of which there are none from the one that is known, and returns the
// seconds until a bookmark has got to that which it read.
func (m *measured) awaitBookmark(ctx context.Context, known uint64) (seconds float64, err error) {
	began, shortest := time.Now(), int64(toBookmark.Seconds())
	revision, err := m.podRevision(ctx)
	if err != nil {
		return 0, err
	}
	w, err := m.Kube.CoreV1().Pods(namespace).Watch(ctx, metav1.ListOptions{FieldSelector: noPod,
		ResourceVersion: strconv.FormatUint(known, 10), AllowWatchBookmarks: true, TimeoutSeconds: &shortest})
	if err != nil {
		return 0, fmt.Errorf("watch pods: %w", err)
	}
	defer w.Stop()
	for e := range w.ResultChan() {
		pod, ok := e.Object.(metav1.Object)
		if !ok || e.Type != watch.Bookmark {
			continue
		}
		at, err := strconv.ParseUint(pod.GetResourceVersion(), 10, 64)
		if err == nil && at >= revision {
			return time.Since(began).Seconds(), nil
		}
	}
	return 0, fmt.Errorf("a watch of pods of %v from revision %d ended without a bookmark of revision %d", toBookmark,
		known, revision)
}

// noPod selects a pod that does not exist.
const noPod = "metadata.name=none"

// podRevision is the revision of the store, of which the API server's cache of pods is up to date then.
func (m *measured) podRevision(ctx context.Context) (uint64, error) {
	none, err := m.Kube.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{FieldSelector: noPod, Limit: 1})
	if err != nil {
		return 0, fmt.Errorf("read the revision of pods: %w", err)
	}
	return strconv.ParseUint(none.ResourceVersion, 10, 64)
}
