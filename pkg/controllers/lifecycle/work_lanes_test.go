package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// draining is a world in which one claim's node is tainted and has forty pods to evict, and another claim was deleted
// just now.
func draining(t *testing.T) *controllertest.Functions {
	t.Helper()
	w := controllertest.NewWorld()
	w.RunApp("many", 40, controllertest.InZone("us-west-2b", controllertest.PodOf(50, 50)))
	w.RunApp("few", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	f := &controllertest.Functions{World: w}
	f.Rest(t, 4)
	all := w.Ports(fake.Fault{})
	mark := func(zone string) {
		for _, c := range w.Claims() {
			if c.Labels["topology.kubernetes.io/zone"] == zone {
				if err := all.DeleteClaim(context.Background(), c); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	mark("us-west-2b")
	if err := f.Lifecycle(all).Run(context.Background(), f.Once()); err != nil { // the taint, the deletion of the node
		t.Fatal(err)
	}
	mark("us-west-2a")
	return f
}

// TestEvictionsKeepNothingElseWaiting: the API server lets those under one budget wait, and the taint of another node
// does not wait with them.
func TestEvictionsKeepNothingElseWaiting(t *testing.T) {
	f := draining(t)
	p := f.World.Ports(fake.Fault{})
	tainted := make(chan struct{})
	var once sync.Once
	var mu sync.Mutex
	evictions, waited := 0, false
	p.Before = func(call string) {
		switch call {
		case "taint node for termination":
			once.Do(func() { close(tainted) })
		case "evict pod":
			mu.Lock()
			evictions++
			mu.Unlock()
			select {
			case <-tainted:
			case <-time.After(5 * time.Second):
				mu.Lock()
				defer mu.Unlock()
				waited = true
			}
		}
	}
	if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if evictions != 40 || waited {
		t.Errorf("%d evictions were asked for, and that the taint waited for them is %t", evictions, waited)
	}
}

// TestLongPassIsDecidedAnew: steps that have not begun after three seconds are left to the next pass.
func TestLongPassIsDecidedAnew(t *testing.T) {
	f := draining(t)
	p := f.World.Ports(fake.Fault{})
	var mu sync.Mutex
	evictions := 0
	p.Before = func(call string) {
		if call != "evict pod" {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if evictions++; evictions == 1 {
			f.World.SkipTime(3 * time.Second)
		}
	}
	if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if evictions == 0 || evictions > 32 {
		t.Errorf("%d evictions began, want no more than were under way when three seconds had passed", evictions)
	}
	left := 0
	for _, pod := range pods(t, f) {
		if pod.NodeName != "" && pod.Deleting.IsZero() && pod.Need.CPU == 50 {
			left++
		}
	}
	if left != 40-evictions {
		t.Errorf("%d pods stay, want %d", left, 40-evictions)
	}
	p.Before = nil
	if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	for _, pod := range pods(t, f) {
		if pod.NodeName != "" && pod.Deleting.IsZero() && pod.Need.CPU == 50 {
			t.Fatalf("pod %s was forgotten", pod.Key())
		}
	}
}

func pods(t *testing.T, f *controllertest.Functions) []cluster.Pod {
	t.Helper()
	s, err := f.World.Ports(fake.Fault{}).ReadSnapshot(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return s.Pods
}

// TestEvictionsUnderOneBudgetTakeTurns, two at a time: in the API server more would be in each other's way. Those that
// no budget bounds need not.
func TestEvictionsUnderOneBudgetTakeTurns(t *testing.T) {
	for _, c := range []struct {
		name    string
		protect bool
	}{{"under one budget", true}, {"under none", false}} {
		alone := func(t *testing.T) {
			f := draining(t)
			if c.protect {
				f.World.ProtectApp("many", 0)
			}
			p := f.World.Ports(fake.Fault{})
			var mu sync.Mutex
			evictions, now, most := 0, 0, 0
			p.Before = func(call string) {
				if call != "evict pod" {
					return
				}
				mu.Lock()
				evictions, now = evictions+1, now+1
				most = max(most, now)
				mu.Unlock()
				time.Sleep(time.Second) // of the bubble's clock: it goes on when nobody else can
				mu.Lock()
				now--
				mu.Unlock()
			}
			if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
				t.Fatal(err)
			}
			if evictions != 40 || (most == 2) != c.protect {
				t.Errorf("%d evictions, %d at once", evictions, most)
			}
		}
		t.Run(c.name, func(t *testing.T) { synctest.Test(t, alone) })
	}
}

// TestNoEvictionWaitsForAnEvent: that the ones before it were told of can wait.
func TestNoEvictionWaitsForAnEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := draining(t)
		f.World.ProtectApp("many", 0)
		p := f.World.Ports(fake.Fault{})
		var mu sync.Mutex
		began, early, events := time.Now(), 0, 0
		p.Before = func(call string) {
			mu.Lock()
			switch call {
			case "evict pod":
				if time.Since(began) < time.Minute {
					early++
				}
			case "write event":
				events++
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
			}
			mu.Unlock()
		}
		if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
		if events < 40 || early <= 32 {
			t.Errorf("%d events, and %d evictions before the first of them was told, want more than are under way at a time", events, early)
		}
	})
}

// TestNamesKeepNoOtherClaimWaiting: EC2 takes few tags a second, and a node that is to go does not wait until a dozen
// that came are named.
func TestNamesKeepNoOtherClaimWaiting(t *testing.T) {
	w := controllertest.NewWorld()
	web := controllertest.PodOf(1500, 3000)
	web.AntiAffinity = []cluster.AffinityTerm{{Key: "kubernetes.io/hostname", Selector: &cluster.Selector{Requirements: []requirements.Requirement{requirements.Of("app", "web")}}}}
	w.RunApp("web", 13, web)
	f := &controllertest.Functions{World: w}
	all := w.Ports(fake.Fault{})
	run := func(p *fake.Ports) {
		t.Helper()
		if err := f.Lifecycle(p).Run(context.Background(), f.Once()); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Provision(all).Run(context.Background(), f.Once()); err != nil {
		t.Fatal(err)
	}
	w.Advance(2 * time.Minute)
	run(all) // registers and initializes all
	claims := w.Claims()
	if err := all.DeleteClaim(context.Background(), claims[len(claims)-1]); err != nil {
		t.Fatal(err)
	}
	p := w.Ports(fake.Fault{})
	tainted := make(chan struct{})
	var mu sync.Mutex
	named, waited := 0, false
	p.Before = func(call string) {
		switch call {
		case "taint node for termination":
			close(tainted)
		case "tag instance":
			mu.Lock()
			named++
			mu.Unlock()
			select {
			case <-tainted:
			case <-time.After(5 * time.Second):
				mu.Lock()
				defer mu.Unlock()
				waited = true
			}
		}
	}
	run(p)
	if named != 12 || waited {
		t.Errorf("%d instances were named, want 12, and that the taint waited for them is %t", named, waited)
	}
}
