package kube

import (
	"context"
	"errors"
	"slices"

	"fmt"
	"joiner.sh/pkg/model/cluster"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// putFiveOfEach stores five pods with a node, five nodes and five claims.
func (h *history) putFiveOfEach() {
	for i := range 5 {
		h.api.put("pods", testPod(fmt.Sprint("n", i), i+1, "node"))
		h.api.put("nodes", testNode(fmt.Sprint("n", i), i+1, "zone"))
		h.api.put("nodeclaims", testClaim(fmt.Sprint("n", i), i+1, "ami"))
	}
}

// putWaitingPod stores a pod that kube-scheduler found no node for.
func (h *history) putWaitingPod() {
	waits := testPod("waits", 9, "")
	waits.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionFalse, Reason: corev1.PodReasonUnschedulable}}}
	h.api.put("pods", waits)
}

// One watch of each kind tells what came while the cache was frozen, and proves that it is all.
func TestOneWatchProvesAKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putFiveOfEach()
		c := h.api.client()
		cache := smallCache(c)
		cache.Resume(t.Context())
		h.checkProven(t.Context(), process{c, cache})
		cache.Freeze()
		for round := range 5 {
			h.api.put("pods", testPod(fmt.Sprint("later", round), 10+round, "node"))
			h.api.mu.Lock()
			clear(h.api.watches)
			clear(h.api.lists)
			h.api.mu.Unlock()
			cache.Resume(t.Context())
			_, err := cache.CachedSnapshot(t.Context())
			h.fail("a look", err)
			cache.Freeze()
			h.api.mu.Lock()
			for _, kind := range []string{"pods", "nodes", "nodeclaims"} {
				if h.api.watches[kind] != 1 || h.api.lists[kind] != 0 {
					t.Errorf("%d watches and %d lists of %s, want one watch", h.api.watches[kind], h.api.lists[kind], kind)
				}
			}
			h.api.mu.Unlock()
		}
	})
}

// The bookmark that the start of an invocation waits for proves what its pass asks for a moment later as well, although
// the store has got on: a pod that waits does not wait for a second one.
func TestTheFirstBookmarkProvesTheFirstPass(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putFiveOfEach()
		c := smallCache(h.api.client())
		c.Resume(t.Context())
		_, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		c.Freeze()
		h.putWaitingPod()
		c.Resume(t.Context())
		began := time.Now()
		time.Sleep(100 * time.Millisecond)
		h.api.put("nodes", testNode("n0", 1, "beats"))
		pods, err := c.PendingPods(t.Context())
		h.fail("a look at pods", err)
		s, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		// the API server sends a bookmark a second after the watch began, and later ones after as long
		if took := time.Since(began); took > 1500*time.Millisecond || len(pods) != 1 || len(s.Pods) != 6 {
			t.Errorf("it took %v, %d pods wait of %d", took, len(pods), len(s.Pods))
		}
		c.Freeze()
	})
}

// What others may have written until a lease was taken is proven by the bookmark that is waited for already, if that
// comes later: nothing is listed, and nothing waits until patience ends.
func TestALeaseTakenMeanwhileNeedsNoList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putFiveOfEach()
		c := smallCache(h.api.client())
		c.Resume(t.Context())
		_, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		for _, when := range []time.Duration{300 * time.Millisecond, 2 * time.Second} {
			c.Freeze()
			h.putWaitingPod()
			h.api.mu.Lock()
			clear(h.api.lists)
			h.api.mu.Unlock()
			c.Resume(t.Context())
			_, err := c.PendingPods(t.Context())
			h.fail("a look at pods", err)
			time.Sleep(when)
			h.api.put("nodeclaims", testClaim("others", 10, "ami"))
			c.Invalidate()
			began := time.Now()
			s, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			h.api.mu.Lock()
			lists := h.api.lists["pods"] + h.api.lists["nodes"] + h.api.lists["nodeclaims"]
			h.api.mu.Unlock()
			// the one list is that of pods that wait
			if took := time.Since(began); took > 1500*time.Millisecond || lists > 1 || len(s.Claims) != 6 {
				t.Errorf("after %v it took %v and %d lists, %d claims", when, took, lists, len(s.Claims))
			}
		}
		c.Freeze()
	})
}

// A cache that knows nothing reads what the snapshot needs while other pods are waited for.
func TestTheUnknownIsReadAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putWaitingPod()
		h.api.put("nodes", testNode("n0", 1, "zone"))
		c := h.api.client().NewClusterCache()
		c.Resume(t.Context())
		_, err := c.PendingPods(t.Context())
		h.fail("a look at pods", err)
		time.Sleep(2 * time.Second)
		h.api.mu.Lock()
		clear(h.api.lists)
		h.api.mu.Unlock()
		s, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		h.api.mu.Lock()
		if n := h.api.lists["pods"] + h.api.lists["nodes"] + h.api.lists["nodeclaims"]; n > 0 || len(s.Pods) != 1 {
			t.Errorf("%d lists and %d pods in a snapshot, want no list and one pod", n, len(s.Pods))
		}
		h.api.mu.Unlock()
		c.Freeze()
	})
}

// Pods that kube-scheduler has not tried yet wait with the one of their controller that it found no node for: for a
// client that lists and for one that knows the cluster. Its word on them is no news then.
func TestUntriedPodsWaitWithTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.api.put("nodes", testNode("n0", 1, "zone"))
		c := smallCache(h.api.client())
		c.Resume(t.Context())
		_, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		yes := true
		put := func(name string, conditions ...corev1.PodCondition) {
			pod := testPod(name, len(name), "")
			pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web",
				UID: "web", Controller: &yes}}
			pod.Spec.SchedulerName = corev1.DefaultSchedulerName
			pod.Status = corev1.PodStatus{Phase: corev1.PodPending, Conditions: conditions}
			h.api.put("pods", pod)
		}
		refused := corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionFalse,
			Reason: corev1.PodReasonUnschedulable}
		count := func(want int) {
			t.Helper()
			time.Sleep(5 * time.Second)
			pods, err := c.PendingPods(t.Context())
			h.fail("a look at pods", err)
			listed, err := c.Client.PendingPods(t.Context())
			h.fail("a list of pods", err)
			s, err := c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			waiting := slices.DeleteFunc(s.Pods, func(p cluster.Pod) bool { return !p.Provisionable() })
			if len(pods) != want || len(listed) != want || len(waiting) != want {
				t.Errorf("%d pods wait, %d listed, %d in a snapshot, want %d", len(pods), len(listed), len(waiting), want)
			}
		}
		put("a")
		put("bb")
		count(0)
		put("a", refused)
		count(2)
		put("bb", refused)
		time.Sleep(time.Second)
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if err := c.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("waiting for news: %v", err)
		}
		c.Freeze()
	})
}

// While the others of several nodes that go are waited for, what the snapshot needs is proven, as it is while pods wait.
func TestPodsThatMustMoveAreProvenAhead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		h.putFiveOfEach()
		c := smallCache(h.api.client())
		c.Resume(t.Context())
		_, err := c.ReadSnapshot(t.Context())
		h.fail("a look", err)
		for _, going := range []bool{false, true} {
			if going {
				claim, now := testClaim("n0", 1, "ami"), metav1.Now()
				claim.DeletionTimestamp, claim.Finalizers = &now, []string{"karpenter.sh/termination"}
				h.api.put("nodeclaims", claim)
			}
			time.Sleep(5 * time.Second)
			h.api.put("nodes", testNode("n1", 2, fmt.Sprint("beats ", going)))
			pods, err := c.PendingPods(t.Context())
			h.fail("a look at pods", err)
			claims, err := c.ListClaims(t.Context())
			h.fail("a look at claims", err)
			time.Sleep(2 * time.Second)
			began := time.Now()
			_, err = c.ReadSnapshot(t.Context())
			h.fail("a look", err)
			if took := time.Since(began); took < 100*time.Millisecond != going || len(pods) > 0 || len(claims) != 5 {
				t.Errorf("going %v: it took %v, %d pods wait, %d claims", going, took, len(pods), len(claims))
			}
		}
		c.Freeze()
	})
}

// slowAt answers requests for one path later.
type slowAt struct {
	http.RoundTripper
	path  string
	delay time.Duration
}

func (s slowAt) RoundTrip(req *http.Request) (*http.Response, error) {
	if strings.HasSuffix(req.URL.Path, s.path) {
		time.Sleep(s.delay)
	}
	return s.RoundTripper.RoundTrip(req)
}

// A snapshot has what came while its last part was read.
func TestASnapshotIsTakenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHistory(t, 1)
		for i := range 5 {
			h.api.put("pods", testPod(fmt.Sprint("n", i), i+1, "node"))
		}
		c, err := New(Config{Endpoint: "http://api.invalid", Transport: slowAt{h.api, "/nodepools", 8 * time.Second}})
		h.fail("a client", err)
		cache := smallCache(c)
		cache.Resume(t.Context())
		time.AfterFunc(6*time.Second, func() { h.api.put("pods", testPod("late", 9, "node")) })
		s, err := cache.ReadSnapshot(t.Context())
		h.fail("a look", err)
		if len(s.Pods) != 6 {
			t.Errorf("%d pods, want the one that came in the meantime too: 6", len(s.Pods))
		}
		cache.Freeze()
	})
}
