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
		claims []cluster.Claim
		want   time.Duration
	}{
		{"nobody", nil, nil, 0},
		{"one", []time.Duration{0}, nil, time.Second},
		{"three over a second", []time.Duration{0, 500 * ms, 900 * ms}, nil, 2 * time.Second},
		{"two apart", []time.Duration{0, 1500 * ms}, nil, time.Second},
		{"long ago", []time.Duration{-time.Minute, -3 * time.Second}, nil, 0},
		{"endless", endless, nil, 10 * time.Second},
		{"while nodes go", []time.Duration{0}, []cluster.Claim{{Deleting: time.Unix(1, 0)}}, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			a := &arrivals{began: time.Now(), at: c.at}
			p := &Controller{Deps: controllers.Deps{Now: time.Now}, Read: a, BatchIdle: time.Second, BatchMax: 10 * time.Second}
			pods, _ := a.PendingPods(t.Context())
			if err := p.waitForBatch(t.Context(), pods, c.claims); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(a.began); took != c.want {
				t.Errorf("%s: waited %s, want %s", c.name, took, c.want)
			}
			pods, _ = a.PendingPods(t.Context())
			if c.name == "one" && p.podsArriving(pods) {
				t.Error("a pod arrives twice")
			}
		})
	}
}
