package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// shownInstances is what EC2 shows.
type shownInstances struct {
	all  []cluster.Instance
	fail error

	mu    sync.Mutex
	asked []string
}

func (s *shownInstances) ListInstances(_ context.Context, which cluster.InstanceFilter) (out []cluster.Instance, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	words := "all"
	switch {
	case len(which.IDs) > 0:
		words = strings.Join(which.IDs, " ")
	case !which.LaunchedSince.IsZero():
		words = "since " + which.LaunchedSince.Format("15:04:05")
	}
	s.asked = append(s.asked, words)
	for _, i := range s.all {
		if which.Selects(i) {
			out = append(out, i)
		}
	}
	return out, s.fail
}

// A process lists all instances every five minutes; in between it asks for those launched lately and for those named.
func TestWhatAnInstanceCacheAsks(t *testing.T) {
	noon := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	old := func(id, state string) cluster.Instance {
		return cluster.Instance{ID: id, State: state, Launched: noon.Add(-time.Hour)}
	}
	s := &shownInstances{all: []cluster.Instance{old("i-3", "running"), old("i-1", "running"), old("i-2", "running"), old("i-4", "running"), old("i-5", "running")}}
	c := &controllers.InstanceCache{}
	look := func(name string, after time.Duration, l controllers.InstanceQuery, want string, asked ...string) {
		t.Helper()
		s.asked, l.Now = nil, noon.Add(after)
		got, err := c.ListInstances(t.Context(), s, l)
		if err != nil {
			t.Fatal(name, err)
		}
		var words []string
		for _, i := range got {
			words = append(words, i.ID+" "+i.State)
		}
		if d := cmp.Diff(want, strings.Join(words, ", ")); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
		slices.Sort(s.asked)
		if d := cmp.Diff(asked, s.asked); d != "" {
			t.Errorf("%s: asked (-want +got):\n%s", name, d)
		}
	}
	named := func(ids ...string) controllers.InstanceQuery { return controllers.InstanceQuery{Named: ids} }
	look("a process that starts", 0, named("i-1"), "i-1 running, i-2 running, i-3 running, i-4 running, i-5 running", "all")
	s.all[1].State, s.all[2].State = "shutting-down", "stopped"
	look("nothing is named", time.Minute, named(), "i-1 running, i-2 running, i-3 running, i-4 running, i-5 running", "since 11:59:00")
	look("one is named", 2*time.Minute, named("i-1"), "i-1 shutting-down, i-2 running, i-3 running, i-4 running, i-5 running", "i-1", "since 12:00:00")
	s.all = append(s.all[1:], cluster.Instance{ID: "i-6", State: "pending", Launched: noon.Add(100 * time.Second)})
	look("one is new, and one that is gone is named", 3*time.Minute, named("i-3"), "i-1 shutting-down, i-2 running, i-4 running, i-5 running, i-6 pending", "i-3", "since 12:01:00")
	s.all[4].State = "running"
	look("the new one is named", 3*time.Minute+time.Second, named("i-6"), "i-1 shutting-down, i-2 running, i-4 running, i-5 running, i-6 running", "i-6", "since 12:02:00")
	look("most are named", 4*time.Minute, named("i-1", "i-2", "i-4"), "i-1 shutting-down, i-2 stopped, i-4 running, i-5 running, i-6 running", "all")
	look("five minutes later", 9*time.Minute, named(), "i-1 shutting-down, i-2 stopped, i-4 running, i-5 running, i-6 running", "all")
	look("all are asked for", 9*time.Minute, controllers.InstanceQuery{All: true}, "i-1 shutting-down, i-2 stopped, i-4 running, i-5 running, i-6 running", "all")
	look("the clock went back", 0, named(), "i-1 shutting-down, i-2 stopped, i-4 running, i-5 running, i-6 running", "all")

	s.fail = errors.New("throttled")
	if got, err := c.ListInstances(t.Context(), s, controllers.InstanceQuery{Now: noon.Add(time.Second)}); !errors.Is(err, s.fail) {
		t.Errorf("%d instances, error %v; want that of EC2", len(got), err)
	}
	s.fail = nil
	look("after an error", 2*time.Second, named(), "i-1 shutting-down, i-2 stopped, i-4 running, i-5 running, i-6 running", "since 11:59:00")
}

// BenchmarkInstanceCache measures a look at 5,000 instances of which none is new.
func BenchmarkInstanceCache(b *testing.B) {
	noon := time.Date(2026, 5, 8, 12, 0, 0, 0, time.UTC)
	s := &shownInstances{}
	for n := range 5000 {
		s.all = append(s.all, cluster.Instance{ID: fmt.Sprintf("i-%04d", n), State: "running", Launched: noon.Add(-time.Hour)})
	}
	c := &controllers.InstanceCache{}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := c.ListInstances(b.Context(), s, controllers.InstanceQuery{Now: noon}); err != nil {
			b.Fatal(err)
		}
	}
}
