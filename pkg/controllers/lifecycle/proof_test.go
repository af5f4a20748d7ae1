package lifecycle_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
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

// unprovenReader has a cache without claims, and cannot look live.
type unprovenReader struct{ staleReader }

func (r *unprovenReader) ReadSnapshot(context.Context) (cluster.Snapshot, error) {
	return cluster.Snapshot{}, errors.New("planted: the API server times out")
}

// Where the live look fails, the pass fails: nothing of a cluster without claims is believed.
func TestAProofThatFailsIsNoProof(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.Advance(time.Hour) // nobody is too young to be leaked
	ports := f.World.Ports(fake.Fault{})
	l := f.Lifecycle(ports)
	l.Read = &unprovenReader{staleReader{Ports: ports, shows: func(s cluster.Snapshot) cluster.Snapshot {
		s.Claims = nil
		return s
	}}}
	if err := l.Run(t.Context(), f.Once()); err == nil || !strings.Contains(err.Error(), "planted") {
		t.Errorf("error %v", err)
	}
	for _, i := range f.World.Instances() {
		if i.Gone() {
			t.Errorf("instance %s was ended", i.ID)
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

// madeAnew reads claims that somebody restored under their names, with their instances.
type madeAnew struct{ *fake.Ports }

func (m madeAnew) ReadClaim(ctx context.Context, name string) (cluster.Claim, bool, error) {
	c, found, err := m.Ports.ReadClaim(ctx, name)
	c.UID, c.Deleting = c.UID+"-anew", time.Time{}
	return c, found, err
}

// A claim that was made anew under the same name, as by a restore, has its instance still, whatever becomes of the one
// before: nothing of it ends on the word of a cache that shows that one.
func TestAClaimThatWasMadeAnewKeepsItsInstance(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.DeleteClaims()
	before := len(f.World.Instances())
	for range 20 {
		r := &staleReader{Ports: f.World.Ports(fake.Fault{}), shows: func(s cluster.Snapshot) cluster.Snapshot { return s }}
		runWith(t, f, r, func(p *fake.Ports) lifecycleLive { return madeAnew{p} })
		f.World.Advance(20 * time.Second)
	}
	if left := len(f.World.Instances()); left != before {
		t.Errorf("%d of %d instances are left", left, before)
	}
}

// oneUnread cannot read one claim live, or the pods of its node.
type oneUnread struct {
	*fake.Ports
	claim, node string
	refused     *atomic.Int32
}

func (u oneUnread) ReadClaim(ctx context.Context, name string) (cluster.Claim, bool, error) {
	if name == u.claim {
		u.refused.Add(1)
		return cluster.Claim{}, false, errors.New("read claim " + name + ": internal error")
	}
	return u.Ports.ReadClaim(ctx, name)
}

func (u oneUnread) PodsOn(ctx context.Context, node string) ([]cluster.Pod, error) {
	if node == u.node {
		u.refused.Add(1)
		return nil, errors.New("list pods of " + node + ": internal error")
	}
	return u.Ports.PodsOn(ctx, node)
}

// A claim that cannot be read live, or the pods of whose node cannot be listed, keeps its own instance, and no other. Each
// invocation that could not read it says so.
func TestOneUnreadableClaimKeepsNoOtherInstance(t *testing.T) {
	for _, what := range []string{"claim", "pods"} {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		f.World.RunApp("web", 24, controllertest.PodOf(3500, 6000))
		f.Rest(t, 4)
		bad, before := f.World.Claims()[0], len(f.World.Instances())
		f.World.DeleteClaims()
		told := false
		for range 20 {
			p := f.World.Ports(fake.Fault{})
			l, u := f.Lifecycle(p), oneUnread{Ports: p, claim: bad.Name, refused: &atomic.Int32{}}
			if what == "pods" {
				u.claim, u.node = "", bad.NodeName
			}
			l.Live = u
			err := l.Run(t.Context(), f.Once())
			says := err != nil && strings.Contains(err.Error(), "internal error")
			if u.refused.Load() > 0 && !says {
				t.Errorf("%s: it could not be read, and the invocation says %v", what, err)
			}
			told = told || says
			f.World.Advance(20 * time.Second)
		}
		var running []string
		for _, i := range f.World.Instances() {
			if !i.Gone() {
				running = append(running, i.ID)
			}
		}
		if before < 3 || !slices.Equal(running, []string{bad.InstanceID()}) || !told {
			t.Errorf("%s: of %d instances %v run, told %t; want that of %s alone, told", what, before, running, told,
				bad.Name)
		}
	}
}

// ghostLister lists an instance among all that it does not show to who asks for it.
type ghostLister struct{ *fake.Ports }

func (g ghostLister) ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error) {
	out, err := g.Ports.ListInstances(ctx, which)
	ghost := cluster.Instance{ID: "i-ghost", State: "running", Launched: time.Unix(0, 0)}
	if len(which.IDs) == 0 && which.LaunchedSince.IsZero() {
		out = append(out, ghost)
	}
	return out, err
}

// An instance that looked leaked when all were listed is asked about before it is ended.
func TestNothingIsEndedOnTheWordOfAListOfInstances(t *testing.T) {
	f := controllertest.RunningPods(t)
	f.World.Advance(time.Hour)
	known := &controllers.InstanceCache{}
	for _, pass := range []string{"first", "second"} {
		p := f.World.Ports(fake.Fault{})
		l := f.Lifecycle(p)
		l.Instances, l.Known = ghostLister{p}, known
		if err := l.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		if slices.Contains(p.Calls(), "terminate") {
			t.Errorf("the %s pass ends an instance that EC2 does not show: %q", pass, p.Calls())
		}
	}
}

// countingLister counts lists of all instances.
type countingLister struct {
	*fake.Ports
	all *int
}

func (c countingLister) ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error) {
	if len(which.IDs) == 0 && which.LaunchedSince.IsZero() {
		*c.all++
	}
	return c.Ports.ListInstances(ctx, which)
}

// All instances are listed once in five minutes, and the end of one is seen all the same, by its node.
func TestTheEndOfAnInstanceIsSeenBetweenTwoLists(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 24, controllertest.PodOf(3500, 6000))
	f.Rest(t, 4)
	f.World.Advance(time.Hour)
	known, all := &controllers.InstanceCache{}, 0
	pass := func() (deleted int) {
		t.Helper()
		p := f.World.Ports(fake.Fault{})
		l := f.Lifecycle(p)
		l.Instances, l.Known = countingLister{p, &all}, known
		if err := l.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		for _, c := range f.World.Claims() {
			if !c.Deleting.IsZero() {
				deleted++
			}
		}
		f.World.Advance(time.Minute)
		return deleted
	}
	if pass(); all != 1 || len(f.World.Instances()) < 3 {
		t.Fatalf("%d lists of %d instances by the first pass, want one of three or more", all, len(f.World.Instances()))
	}
	f.World.InterruptInstance(controllertest.FirstInstance(f))
	f.World.Advance(time.Second)
	if got := pass(); got != 1 || all != 1 {
		t.Errorf("%d claims are deleted after %d lists of all; want one, after one", got, all)
	}
}
