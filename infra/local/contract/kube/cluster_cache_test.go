package kube_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// looked are the lists among the requests of what there is much of.
func looked(requests []string) (out []string) {
	for _, r := range requests {
		verb, path, _ := strings.Cut(r, " ")
		path, _, _ = strings.Cut(path, " ")
		if _, ok := proofAges[path]; ok && verb == "GET" {
			out = append(out, path)
		}
	}
	return out
}

// following is a cache that has listed everything and follows it.
func (c env) following(t *testing.T, k *kube.Client, r *recorder) *kube.ClusterCache {
	t.Helper()
	m := k.NewClusterCache()
	resume(t, m)
	follow(t, m, r)
	return m
}

// resume begins an invocation that lasts as long as the test.
func resume(t *testing.T, m *kube.ClusterCache) {
	t.Helper()
	m.Resume(context.Background())
	t.Cleanup(m.Freeze)
}

// follow opens the watches of a cache that has none.
func follow(t *testing.T, m *kube.ClusterCache, r *recorder) {
	t.Helper()
	snapshotOf(t, m)
	r.take()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = m.Wait(ctx) }()
	watching(t, r)
	cancel()
	<-done
	r.take()
}

// cached is what the cache shows without asking.
type cached struct{ *kube.ClusterCache }

func (c cached) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return c.CachedSnapshot(ctx)
}

// snapshotOf is a snapshot without its time.
func snapshotOf(t *testing.T, k interface {
	ReadSnapshot(context.Context) (cluster.Snapshot, error)
},
) cluster.Snapshot {
	t.Helper()
	s, err := k.ReadSnapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s.Now = time.Time{}
	return s
}

// What others do is in the next look after Wait, without a list; the cache shows what the client would.
func TestCacheShowsWhatOthersDo(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	other, _ := c.client(t)
	c.addNode(t, c.name)
	n := c.readyNode(t, other, c.name)
	claim := c.addClaim(t, other)
	nowhere := func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubetest": "nowhere"} }
	m := c.following(t, k, r)
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"a pod without a node", func() error { c.addPod(t, "web", "", nowhere); return nil }},
		{"a node that is marked for deletion", func() error { return other.TaintForTermination(t.Context(), n) }},
		{"a claim that is marked for deletion", func() error { return other.DeleteClaim(t.Context(), claim) }},
	} {
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.what, err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := m.Wait(ctx); err != nil {
			t.Errorf("%s: %v, want to wake", step.what, err)
		}
		cancel()
	}
	// The last write was to a claim: pods and nodes are not waited for, so that they are compared until they agree.
	eventually(t, "cache and client to agree", func(context.Context) (string, bool) {
		diff := cmp.Diff(snapshotOf(t, other), snapshotOf(t, cached{m}), cmpopts.EquateEmpty())
		return diff, diff == ""
	})
	if got := r.takeEarlyLists(); len(got) > 0 {
		t.Errorf("lists: %v, want none", got)
	}
	c.addPod(t, "more", "", nowhere)
	eventually(t, "a second pod in need of a node", func(ctx context.Context) (string, bool) {
		pods, err := m.PendingPods(ctx)
		return cmp.Diff(nil, err), len(slices.DeleteFunc(pods, func(p cluster.Pod) bool { return p.Namespace != c.name })) == 2
	})
}

// What was written through the client is in the next look, at once and without a list.
func TestCacheShowsOwnWritesAtOnce(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	running := c.runningPods(t, "a", "b")
	n := c.readyNode(t, k, c.name)
	m := c.following(t, k, r)
	claim := c.addClaim(t, k)
	find := func() (out cluster.Claim) {
		for _, have := range snapshotOf(t, cached{m}).Claims {
			if have.UID == claim.UID {
				out = have
			}
		}
		return out
	}
	if find().Name == "" {
		t.Error("a claim that was made is not shown")
	}
	for range 10 {
		var err error
		if claim, err = k.AnnotateClaim(t.Context(), find(), map[string]string{"joiner.sh/x": find().Version}); err != nil {
			t.Fatalf("annotate the claim as shown: %v", err)
		}
		if got := find(); got.Version != claim.Version {
			t.Fatalf("version %s is shown, %s was written", got.Version, claim.Version)
		}
	}
	gone := func(p cluster.Pod) bool {
		return !slices.ContainsFunc(snapshotOf(t, cached{m}).Pods, func(have cluster.Pod) bool { return have.UID == p.UID && !have.Terminating() })
	}
	if got, err := k.EvictPod(t.Context(), running[0]); err != nil || got.Outcome != cluster.Evicted || !gone(running[0]) {
		t.Errorf("a pod that was evicted (%+v %v) is shown as before", got, err)
	}
	if err := k.DeletePod(t.Context(), running[1], 30); err != nil || !gone(running[1]) {
		t.Errorf("a pod that was deleted (%v) is shown as before", err)
	}
	if err := k.TaintForTermination(t.Context(), n); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(snapshotOf(t, cached{m}).Nodes, func(have cluster.Node) bool { return have.UID == n.UID && len(have.Taints) > 0 }) {
		t.Error("a node that was marked for deletion is shown without the taint")
	}
	if err := k.DeleteClaim(t.Context(), claim); err != nil || find().Deleting.IsZero() {
		t.Errorf("a claim that was deleted (%v) is shown as before", err)
	}
	if err := k.ReleaseClaim(t.Context(), claim); err != nil || find().Name != "" {
		t.Errorf("a claim that was released (%v) is still shown", err)
	}
	if got := r.takeEarlyLists(); len(got) > 0 {
		t.Errorf("lists: %v, want none", got)
	}
}

// Whoever held the lease between may have written what no watch has told yet; the same holds for who relied on a watch
// lease.
func TestCacheListsWhereOthersMustBeSeen(t *testing.T) {
	c := newEnv(t)
	k, r := c.client(t)
	other, _ := c.client(t)
	m := c.following(t, k, r)
	turn := func(l interface {
		Acquire(context.Context, string, string, time.Duration) (func(context.Context) error, bool, error)
	}, name string,
	) {
		t.Helper()
		release, ok, err := l.Acquire(t.Context(), name, "holder", time.Minute)
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
		if err := release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	look := func() {
		r.take()
		snapshotOf(t, cached{m})
	}
	wantLists := func(what string) {
		t.Helper()
		look()
		if got := looked(r.take()); len(got) != 3 {
			t.Errorf("%s: lists %v, want 3", what, got)
		}
	}
	wantNone := func(what string) {
		t.Helper()
		look()
		if got := r.takeEarlyLists(); len(got) > 0 {
			t.Errorf("%s: lists %v, want none", what, got)
		}
	}
	wantNone("a look at what is followed")
	turn(m, c.name)
	wantLists("a lease taken for the first time")
	turn(m, c.name)
	wantNone("a lease that nobody else had")
	turn(other, c.name)
	turn(m, c.name)
	wantLists("a lease that another had")
	turn(kube.WatchLease{ClusterCache: m}, c.name+"-watch")
	wantLists("a watch lease that ended")
	m.Invalidate()
	wantLists("after Invalidate")
}

// watches keeps the bodies of watches, to break them.
type watches struct {
	next http.RoundTripper
	mu   sync.Mutex
	open []io.Closer
}

func (w *watches) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "true" {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.open = append(w.open, resp.Body)
	}
	return resp, err
}

// After a watch that breaks another goes on from the last event.
func TestCacheOfABrokenWatch(t *testing.T) {
	c := newEnv(t)
	w := &watches{}
	r := &recorder{}
	k, _ := c.clientWith(t, func(config *kube.Config) {
		config.Wrap = func(next http.RoundTripper) http.RoundTripper { w.next, r.next = next, w; return r }
	})
	m := c.following(t, k, r)
	w.mu.Lock()
	for _, body := range w.open {
		_ = body.Close()
	}
	w.mu.Unlock()
	c.addPod(t, "web", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubetest": "nowhere"} })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Wait(ctx); err != nil {
		t.Errorf("error %v, want to wake", err)
	}
	if !slices.ContainsFunc(snapshotOf(t, cached{m}).Pods, func(p cluster.Pod) bool { return p.Namespace == c.name }) {
		t.Error("a pod that came after the watches broke is not shown")
	}
	if got := r.takeEarlyLists(); len(got) > 0 {
		t.Errorf("lists: %v, want none", got)
	}
}

// manyNodes are more nodes than are listed to prove something.
func (c env) manyNodes(t *testing.T) {
	t.Helper()
	var g errgroup.Group
	g.SetLimit(8)
	for i := range 160 {
		g.Go(func() error { c.addNode(t, fmt.Sprintf("%s-%d", c.name, i)); return nil })
	}
	_ = g.Wait()
}

// nodesOf are the names of the nodes whose name begins so.
func nodesOf(s cluster.Snapshot, prefix string) map[string]bool {
	out := map[string]bool{}
	for _, n := range s.Nodes {
		if strings.HasPrefix(n.Name, prefix) {
			out[strings.TrimPrefix(n.Name, prefix)] = true
		}
	}
	return out
}

// What happened while the process was frozen is in the first look of the next invocation, by a watch that goes on: a
// look at the cache too proves first that it has caught up. Once more it is read without a list when the watches are
// silent. A bookmark that comes too late is replaced by a list, as on a machine that is busy: one of three times is
// enough to show that none is needed.
func TestCacheGoesOnAfterAFreeze(t *testing.T) {
	c := newEnv(t)
	c.manyNodes(t)
	silent := &silentWatches{}
	r := &recorder{}
	k, _ := c.clientWith(t, func(config *kube.Config) {
		config.Wrap = func(next http.RoundTripper) http.RoundTripper { silent.next, r.next = next, silent; return r }
	})
	m := k.NewClusterCache()
	m.Resume(t.Context())
	snapshotOf(t, m)
	m.Freeze()
	changes := 0
	// change makes a node and removes another. The check wants the next look to show both, and returns its lists.
	change := func() (check func(s cluster.Snapshot) (lists []string)) {
		t.Helper()
		made, removed := fmt.Sprint("-new", changes), fmt.Sprint("-", changes)
		changes++
		c.addNode(t, c.name+made)
		must(t, c.CoreV1().Nodes().Delete(t.Context(), c.name+removed, metav1.DeleteOptions{}))
		r.take()
		return func(s cluster.Snapshot) []string {
			t.Helper()
			if got := nodesOf(s, c.name); !got[made] || got[removed] {
				t.Errorf("%s shown %t, want true; %s shown %t, want false", made, got[made], removed, got[removed])
			}
			return looked(r.take())
		}
	}
	var lists []string
	for range 3 {
		check := change()
		m.Resume(context.Background())
		lists = check(snapshotOf(t, cached{m}))
		silent.mute.Store(true) // those of four minutes; the ones that prove something are heard
		check = change()
		lists = append(lists, check(snapshotOf(t, m))...)
		silent.mute.Store(false)
		m.Freeze()
		if !slices.Contains(lists, "/api/v1/nodes") {
			return
		}
	}
	t.Errorf("lists %v, want none of nodes", lists)
}
