package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// staleReader has a cache that stands still, and live looks that somebody may change.
type staleReader struct {
	*fake.Ports
	shows func(cluster.Snapshot) cluster.Snapshot
	reads int // that are proven
}

func (r *staleReader) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, err := r.Ports.ReadSnapshot(ctx)
	return r.shows(s), err
}

func (r *staleReader) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	r.reads++
	return r.Ports.ReadSnapshot(ctx)
}

// runWith is one pass of lifecycle on these readers.
func runWith(t *testing.T, f *controllertest.Functions, r *staleReader, live func(*fake.Ports) lifecycleLive) {
	t.Helper()
	l := f.Lifecycle(r.Ports)
	l.Read = r
	if live != nil {
		l.Live = live(r.Ports)
	}
	if err := l.Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
}

type lifecycleLive interface {
	ReadClaim(ctx context.Context, name string) (cluster.Claim, bool, error)
	PodsOn(ctx context.Context, node string) ([]cluster.Pod, error)
}

// A cache in which the claims are missing makes their instances look leaked, and one in which they are deleted makes
// their nodes look doomed. Neither is acted on. A cache with nothing to do is believed.
func TestNothingIsTakenAwayOnTheWordOfACache(t *testing.T) {
	for _, c := range []struct {
		name  string
		shows func(cluster.Snapshot) cluster.Snapshot
		reads int
	}{
		{"as it is", func(s cluster.Snapshot) cluster.Snapshot { return s }, 0},
		{"no claims", func(s cluster.Snapshot) cluster.Snapshot { s.Claims = nil; return s }, 1},
		{"deleted claims", func(s cluster.Snapshot) cluster.Snapshot {
			for i := range s.Claims {
				s.Claims[i].Deleting = s.Now.Add(-time.Hour)
			}
			return s
		}, 1},
	} {
		f := controllertest.RunningPods(t)
		f.World.Advance(time.Hour) // nobody is too young to be leaked
		r := &staleReader{Ports: f.World.Ports(fake.Fault{}), shows: c.shows}
		before := len(f.World.Instances())
		runWith(t, f, r, nil)
		if r.reads != c.reads {
			t.Errorf("%s: %d proven looks, want %d", c.name, r.reads, c.reads)
		}
		for _, i := range f.World.Instances() {
			if i.Gone() {
				t.Errorf("%s: instance %s was ended", c.name, i.ID)
			}
		}
		if got := len(f.World.Instances()); got != before {
			t.Errorf("%s: %d instances, want %d", c.name, got, before)
		}
		for _, claim := range f.World.Claims() {
			if !claim.Deleting.IsZero() {
				t.Errorf("%s: claim %s was deleted", c.name, claim.Name)
			}
		}
	}
}

// busyNodes shows a pod on every node that no list of all pods has shown.
type busyNodes struct{ *fake.Ports }

func (b busyNodes) PodsOn(_ context.Context, node string) ([]cluster.Pod, error) {
	return []cluster.Pod{{Namespace: "default", Name: "late", UID: "late", Phase: "Running", NodeName: node,
		Owner: cluster.OwnerOther}}, nil
}

// The claim and the pods of its node are read live before an instance ends: one to which a pod has come is kept.
func TestAnInstanceIsKeptWhosePodsAreSeenLate(t *testing.T) {
	for _, busy := range []bool{true, false} {
		f := controllertest.RunningPods(t)
		f.World.DeleteClaims()
		running := func() (n int) {
			for _, i := range f.World.Instances() {
				if !i.Gone() {
					n++
				}
			}
			return n
		}
		before := running()
		for range 20 {
			r := &staleReader{Ports: f.World.Ports(fake.Fault{}), shows: func(s cluster.Snapshot) cluster.Snapshot { return s }}
			live := func(p *fake.Ports) lifecycleLive { return p }
			if busy {
				live = func(p *fake.Ports) lifecycleLive { return busyNodes{p} }
			}
			runWith(t, f, r, live)
			f.World.Advance(20 * time.Second)
		}
		if got := running(); busy && got < before || !busy && got > 0 {
			t.Errorf("pods seen late %t: %d of %d instances run", busy, got, before)
		}
	}
}
