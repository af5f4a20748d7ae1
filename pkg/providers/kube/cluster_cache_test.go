package kube

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/testing/shortrun"
)

var (
	histories    = shortrun.NewCount("histories", 60, 10, "random histories of the cluster that a cache is fed")
	firstHistory = flag.Uint64("first-history", 1, "the first of them")
)

// smallCache is a cache that takes a handful of objects for many.
func smallCache(c *Client) *ClusterCache {
	cache := c.NewClusterCache()
	for _, k := range cache.kinds {
		k.few = 2
	}
	return cache
}

// history makes random changes, of which a model is the store itself.
type history struct {
	t    *testing.T
	api  *apiServer
	rng  *rand.Rand
	made int

	uid   map[string]int // of the object of each name
	lives int
}

// renew has the next object of the name be another one: a UID never comes back.
func (h *history) renew(name string) {
	h.lives++
	h.uid[name] = h.lives
}

func newHistory(t *testing.T, seed uint64) *history {
	return &history{t: t, api: newAPIServer(seed), rng: rand.New(rand.NewPCG(seed, 2)), uid: map[string]int{}}
}

// change is one write of somebody else. A name may get another object at once, or after the one before was removed.
func (h *history) change() {
	defer time.Sleep(time.Millisecond)
	h.made++
	what, which := h.rng.IntN(9), h.rng.IntN(6)
	name := fmt.Sprint("n", which)
	removes := what == 3 || what == 5 || what == 8
	if removes || h.uid[name] == 0 || h.rng.IntN(3) == 0 {
		h.renew(name)
	}
	uid := h.uid[name]
	switch what {
	case 0, 1, 2:
		h.api.put("pods", testPod(name, uid, fmt.Sprint("node", h.made)))
	case 3:
		h.api.remove("pods", name)
	case 4:
		h.api.put("nodes", testNode(name, uid, fmt.Sprint("zone", h.made)))
	case 5:
		h.api.remove("nodes", name)
	case 6, 7:
		h.api.put("nodeclaims", testClaim(name, uid, fmt.Sprint("ami", h.made)))
	case 8:
		h.api.remove("nodeclaims", name)
	}
}

// disaster is what API servers, networks and operators do.
func (h *history) disaster() {
	h.api.mu.Lock()
	h.api.late = []time.Duration{0, 100 * time.Millisecond, 20 * time.Second}[h.rng.IntN(3)]
	h.api.deaf = h.rng.IntN(6) == 0
	h.api.noMarks = h.rng.IntN(6) == 0
	h.api.breaking = []float64{0, 0, 0.3}[h.rng.IntN(3)]
	h.api.repeating = []float64{0, 0.3}[h.rng.IntN(2)]
	h.api.mu.Unlock()
	if h.rng.IntN(4) == 0 {
		h.api.compact([]string{"pods", "nodes", "nodeclaims"}[h.rng.IntN(3)])
	}
}

// process is one process with its cache.
type process struct {
	client *Client
	cache  *ClusterCache
}

func followedOf(s cluster.Snapshot) cluster.Snapshot {
	return cluster.Snapshot{Pods: s.Pods, Nodes: s.Nodes, Claims: s.Claims}
}

// invocation looks at the cluster a few times while it changes.
func (h *history) invocation(p process) {
	ctx, cancel := context.WithTimeout(h.t.Context(), 10*time.Minute)
	defer cancel()
	p.cache.Resume(ctx)
	defer p.cache.Freeze()
	if h.rng.IntN(4) == 0 {
		h.lookShortly(ctx, p)
		return // the next invocation goes on with its lists
	}
	for range 1 + h.rng.IntN(4) {
		for range h.rng.IntN(5) {
			h.change()
		}
		if h.rng.IntN(3) == 0 {
			h.disaster()
		}
		switch h.rng.IntN(6) {
		case 0:
			time.Sleep(time.Duration(h.rng.IntN(20000)) * time.Millisecond)
		case 1:
			h.checkOwnWrite(ctx, p)
		case 2:
			waits, stop := context.WithTimeout(ctx, time.Second)
			_ = p.cache.Wait(waits)
			stop()
		case 3:
			_, err := p.cache.CachedSnapshot(ctx)
			h.fail("a look at the cache", err)
		case 4:
			h.lookShortly(ctx, p)
		}
		h.checkProven(ctx, p)
	}
}

// lookShortly looks at the cluster without the time to read all of it.
func (h *history) lookShortly(ctx context.Context, p process) {
	cut, stop := context.WithTimeout(ctx, time.Duration(1+h.rng.IntN(12))*time.Millisecond)
	defer stop()
	_, _ = p.cache.ReadSnapshot(cut)
}

func (h *history) fail(what string, err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatalf("%s: %v", what, err)
	}
}

// checkProven compares a proven look with a list by somebody who has no cache.
func (h *history) checkProven(ctx context.Context, p process) {
	h.t.Helper()
	got, err := p.cache.ReadSnapshot(ctx)
	h.fail("a proven look", err)
	h.compareWithList(ctx, got)
}

func (h *history) compareWithList(ctx context.Context, got cluster.Snapshot) {
	h.t.Helper()
	want, err := h.api.client().ReadSnapshot(ctx)
	h.fail("a list", err)
	if d := cmp.Diff(followedOf(want), followedOf(got), cmpopts.EquateEmpty()); d != "" {
		h.t.Fatalf("the cache differs from a list (-list +cache):\n%s", d)
	}
}

// checkOwnWrite writes to a claim that the cache shows, and looks whether that is in the next look.
func (h *history) checkOwnWrite(ctx context.Context, p process) {
	h.t.Helper()
	claims, err := p.cache.ListClaims(ctx)
	h.fail("a list of claims", err)
	if len(claims) == 0 {
		return
	}
	of := claims[h.rng.IntN(len(claims))]
	written := uint64(0)
	if h.rng.IntN(2) == 0 {
		h.fail("a deletion", p.client.DeleteClaim(ctx, of))
		h.renew(of.Name)
	} else {
		h.made++
		version, err := p.client.patchAny(ctx, of.Name, fmt.Sprint(h.made))
		if isNotFound(err) {
			return
		}
		h.fail("a write", err)
		written = parseVersion(h.t, version)
	}
	now, err := p.cache.CachedSnapshot(ctx)
	h.fail("a look at the cache", err)
	for _, c := range now.Claims {
		switch {
		case c.Name != of.Name || c.UID != of.UID:
		case written == 0:
			h.t.Fatalf("claim %s is shown after this process deleted it", of.Name)
		case parseVersion(h.t, c.Version) < written:
			h.t.Fatalf("claim %s is shown in version %s after this process wrote %d", of.Name, c.Version, written)
		}
	}
}

func parseVersion(t *testing.T, version string) uint64 {
	t.Helper()
	n, err := strconv.ParseUint(version, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// patchAny annotates a claim as it is now, and returns its version.
func (c *Client) patchAny(ctx context.Context, name, value string) (string, error) {
	began, got := time.Now(), &karpv1.NodeClaim{}
	err := c.patchObject(ctx, apiCall{verb: "annotate", place: claimPath(), name: name}, "",
		patchFields{"metadata": patchFields{"annotations": patchFields{"x": value}}}, got)
	if err == nil {
		c.noteWritten(claimPath(), got, began)
	}
	return got.ResourceVersion, err
}

// A proven look shows what a list shows that is read after it, whatever became of the cache before: frozen, forgotten,
// deaf, told twice or late, set back; and a look at the cache shows what the process wrote. Two processes take turns.
func TestCacheAgreesWithAList(t *testing.T) {
	for n := range histories.N() {
		seed := *firstHistory + uint64(n)
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, seed)
			defer func() {
				if t.Failed() {
					t.Logf("history %d: go test -run TestCacheAgreesWithAList -args -histories 1 -first-history %d", seed, seed)
				}
			}()
			for range 10 {
				h.change()
			}
			processes := make([]process, 2)
			for i := range processes {
				c := h.api.client()
				processes[i] = process{c, smallCache(c)}
			}
			for range 8 {
				h.invocation(processes[h.rng.IntN(2)])
				time.Sleep(time.Duration(h.rng.IntN(100)) * time.Second)
				for range h.rng.IntN(8) { // while both are frozen
					h.change()
				}
			}
		})
	}
}

// A store whose revision is lower than what is known was set back: nothing that is known counts.
func TestCacheOfAStoreThatWasSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		for range 60 {
			h.change()
		}
		c := h.api.client()
		p := process{c, smallCache(c)}
		p.cache.Resume(t.Context())
		defer p.cache.Freeze()
		h.checkProven(t.Context(), p)
		h.api.restore()
		h.checkProven(t.Context(), p)
	})
}

// overtaken has something happen after the API server told its revision and before that arrives.
type overtaken struct {
	http.RoundTripper
	happen func()
}

func (o overtaken) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := o.RoundTripper.RoundTrip(req)
	if req.URL.Query().Get("limit") == "1" {
		o.happen()
	}
	return resp, err
}

// A store is not set back because a watch was told of a change before the revision of the moment before arrived.
func TestARevisionThatAnEventOvertakesIsNoSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		made := 0
		put := func() {
			made++
			h.api.put("pods", testPod(fmt.Sprint("n", made), made, "node"))
		}
		for range 5 {
			put()
		}
		c, err := New(Config{Endpoint: "http://api.invalid", Transport: overtaken{h.api, func() {
			put()
			time.Sleep(time.Second) // the watch tells of it
		}}})
		h.fail("a client", err)
		cache := smallCache(c)
		cache.Resume(t.Context())
		_, err = cache.ReadSnapshot(t.Context())
		h.fail("a look", err)
		put()
		h.api.mu.Lock()
		before := h.api.lists["pods"]
		h.api.mu.Unlock()
		s, err := cache.ReadSnapshot(t.Context())
		h.fail("a look", err)
		h.api.mu.Lock()
		got := h.api.lists["pods"] - before
		h.api.mu.Unlock()
		if got != 0 || len(s.Pods) != made {
			t.Errorf("%d lists, want none, and %d pods, want %d", got, len(s.Pods), made)
		}
		cache.Freeze()
	})
}

// The end of an invocation waits for no proof in the time that its function needs to end.
func TestCacheIsFrozenInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		for range 60 {
			h.change()
		}
		c := h.api.client()
		cache := smallCache(c)
		cache.Resume(t.Context())
		_, err := cache.ReadSnapshot(t.Context())
		h.fail("a look", err)
		cache.Freeze()
		h.change()
		h.api.mu.Lock()
		h.api.noMarks, h.api.deaf = true, true
		h.api.mu.Unlock()
		end := time.Now().Add(3 * time.Second)
		ctx, cancel := context.WithDeadline(t.Context(), end)
		defer cancel()
		cache.Resume(ctx)
		cache.Freeze()
		if left := time.Until(end); left < endingTakes {
			t.Errorf("%v are left of the invocation, want %v", left, endingTakes)
		}
	})
}

// Where a list takes long, as in a large cluster or on a slow processor, a watch that is late is waited for: to list
// instead would make both later.
func TestALateWatchIsWaitedForAsLongAsAListTakes(t *testing.T) {
	for took, lists := range map[time.Duration]int{time.Second: 1, 20 * time.Second: 0} {
		synctest.Test(t, func(t *testing.T) {
			h := newHistory(t, 1)
			for i := range 5 {
				h.api.put("pods", testPod(fmt.Sprint("n", i), i+1, "node"))
			}
			c := smallCache(h.api.client())
			c.Resume(t.Context())
			_, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			c.Freeze()
			h.api.put("pods", testPod("late", 9, "node"))
			h.api.mu.Lock()
			h.api.deaf = true
			before := h.api.lists["pods"]
			h.api.mu.Unlock()
			c.Resume(t.Context())
			c.mu.Lock()
			c.kinds[0].took = took
			c.mu.Unlock()
			time.AfterFunc(6*time.Second, func() {
				h.api.mu.Lock()
				h.api.deaf = false
				h.api.mu.Unlock()
				c.mu.Lock()
				c.kinds[0].reopen()
				c.mu.Unlock()
			})
			s, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			h.api.mu.Lock()
			got := h.api.lists["pods"] - before
			h.api.mu.Unlock()
			if got != lists || len(s.Pods) != 6 {
				t.Errorf("after a list of %v: %d lists, want %d, and %d pods", took, got, lists, len(s.Pods))
			}
			c.Freeze()
		})
	}
}
