package provision

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// arrivals is a cluster to which a pod comes at each of these times.
type arrivals struct {
	controllers.Reader
	began time.Time
	at    []time.Duration
}

func (a *arrivals) PendingPods(context.Context) (out []cluster.Pod, _ error) {
	for i, after := range a.at {
		if created := a.began.Add(after); !time.Now().Before(created) {
			out = append(out, cluster.Pod{UID: fmt.Sprint(i), Created: created.Truncate(time.Second)})
		}
	}
	return out, nil
}

// TestPodsOfABurstAreGathered: they are packed when none has come for a second, after ten seconds at the latest.
func TestPodsOfABurstAreGathered(t *testing.T) {
	endless := make([]time.Duration, 100)
	for i := range endless {
		endless[i] = time.Duration(i) * 500 * time.Millisecond
	}
	ms := time.Millisecond
	for _, c := range []struct {
		name   string
		at     []time.Duration
		slow   time.Duration // from the look at pods until the wait begins
		claims []cluster.Claim
		want   time.Duration
	}{
		{"nobody", nil, 0, nil, 0},
		{"one", []time.Duration{0}, 0, nil, time.Second},
		{"one, after a slow look", []time.Duration{0}, 700 * ms, nil, time.Second},
		{"one, after a slower look", []time.Duration{0}, 1200 * ms, nil, 1200 * ms},
		{"two, after a slow look", []time.Duration{0, 500 * ms}, 700 * ms, nil, 2 * time.Second},
		{"three over a second", []time.Duration{0, 500 * ms, 900 * ms}, 0, nil, 2 * time.Second},
		{"two apart", []time.Duration{0, 1500 * ms}, 0, nil, time.Second},
		{"long ago", []time.Duration{-time.Minute, -3 * time.Second}, 0, nil, 0},
		{"endless", endless, 0, nil, 10 * time.Second},
		{"while nodes go", []time.Duration{0}, 0, []cluster.Claim{{Deleting: time.Unix(1, 0)}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &arrivals{began: time.Now(), at: c.at}
			controller := &Controller{Deps: controllers.Deps{Now: time.Now}, Read: a, BatchIdle: time.Second, BatchMax: 10 * time.Second}
			pods, _ := a.PendingPods(t.Context())
			time.Sleep(c.slow)
			if err := controller.waitForBatch(t.Context(), pods, a.began, c.claims); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(a.began); took != c.want {
				t.Errorf("%s: waited %s, want %s", c.name, took, c.want)
			}
			pods, _ = a.PendingPods(t.Context())
			if c.name == "one" && controller.podsArriving(pods) {
				t.Error("a pod arrives twice")
			}
		})
	}
}

// departures is a cluster of which a claim is deleted at each of these times.
type departures struct {
	controllers.Reader
	began time.Time
	at    []time.Duration
}

func (d *departures) ListClaims(context.Context) (out []cluster.Claim, _ error) {
	for i, after := range d.at {
		if deleted := d.began.Add(after); !time.Now().Before(deleted) {
			out = append(out, cluster.Claim{UID: fmt.Sprint(i), Deleting: deleted.Truncate(time.Second)})
		}
	}
	return out, nil
}

// Nodes that go together are replaced together: a pass begins when at most one more has gone within a second, after ten
// seconds at the latest. For one alone nobody waits, unless it is seen late.
func TestNodesThatGoTogetherAreGathered(t *testing.T) {
	ms := time.Millisecond
	endless := make([]time.Duration, 100)
	for i := range endless {
		endless[i] = time.Duration(i-1) * 250 * ms
	}
	for _, c := range []struct {
		name string
		at   []time.Duration
		want time.Duration
	}{
		{"one", []time.Duration{0}, 0},
		{"two", []time.Duration{0, 0}, time.Second},
		{"two and one later", []time.Duration{0, 0, 500 * ms}, time.Second},
		{"two and two later", []time.Duration{0, 0, 500 * ms, 900 * ms}, 2 * time.Second},
		{"one, seen late", []time.Duration{-3 * time.Second}, time.Second},
		{"one, seen late, and two later", []time.Duration{-3 * time.Second, 500 * ms, 900 * ms}, 2 * time.Second},
		{"many, long ago", []time.Duration{-time.Minute, -15 * time.Second, -13 * time.Second}, 0},
		{"endless", endless, 10 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &departures{began: time.Now(), at: c.at}
			controller := &Controller{Deps: controllers.Deps{Now: time.Now}, Read: d, BatchIdle: time.Second, BatchMax: 10 * time.Second}
			claims, _ := d.ListClaims(t.Context())
			if err := controller.waitForBatch(t.Context(), nil, d.began, claims); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(d.began); took != c.want {
				t.Errorf("%s: waited %s, want %s", c.name, took, c.want)
			}
		})
	}
}
