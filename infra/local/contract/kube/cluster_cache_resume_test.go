package kube_test

import (
	"context"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/providers/kube"
)

// silentWatches withholds what watches tell that are opened while it is mute, but for short ones.
type silentWatches struct {
	next http.RoundTripper
	mute atomic.Bool
}

func (w *silentWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := w.next.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "true" && req.URL.Query().Get("timeoutSeconds") != "3" {
		resp.Body = &mutedBody{ReadCloser: resp.Body, mute: &w.mute, given: req.Context().Done(), closed: make(chan struct{})}
	}
	return resp, err
}

type mutedBody struct {
	io.ReadCloser
	mute   *atomic.Bool
	given  <-chan struct{} // closed when the watch is given up
	once   sync.Once
	closed chan struct{}
}

func (b *mutedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if err == nil && b.mute.Load() { // one that was given up ends as ever
		select {
		case <-b.closed:
		case <-b.given:
		}
		return 0, io.EOF
	}
	return n, err
}

func (b *mutedBody) Close() error {
	b.once.Do(func() { close(b.closed) })
	return b.ReadCloser.Close()
}

// oldWatches has every watch begin at a version that the API server has forgotten.
type oldWatches struct {
	next http.RoundTripper
	on   atomic.Bool
}

func (w *oldWatches) RoundTrip(req *http.Request) (*http.Response, error) {
	if q := req.URL.Query(); w.on.Load() && q.Get("watch") == "true" {
		req = req.Clone(req.Context())
		q.Set("resourceVersion", "1")
		req.URL.RawQuery = q.Encode()
	}
	return w.next.RoundTrip(req)
}

// A version that the API server does not know any more means a list of that kind. The server keeps events of a custom
// resource since its definition was there, so that the first version of all is too old.
func TestCacheListsWhatIsGone(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	other, _ := c.client(t)
	var g errgroup.Group
	g.SetLimit(8)
	for range 160 {
		g.Go(func() error { c.addClaim(t, other); return nil })
	}
	_ = g.Wait()
	old := &oldWatches{}
	r := &recorder{}
	k, _ := c.clientWith(t, func(config *kube.Config) {
		config.Wrap = func(next http.RoundTripper) http.RoundTripper { old.next, r.next = next, old; return r }
	})
	m := k.NewClusterCache()
	m.Resume(t.Context())
	snapshotOf(t, m)
	m.Freeze()
	made := c.addClaim(t, other)
	r.take()
	old.on.Store(true)
	resume(t, m)
	claims, err := m.ListClaims(t.Context())
	if err != nil || !slices.ContainsFunc(claims, func(have cluster.Claim) bool { return have.UID == made.UID }) {
		t.Errorf("a claim that was made during the freeze is not shown, error %v", err)
	}
	if lists := looked(r.take()); !slices.Contains(lists, "/apis/karpenter.sh/v1/nodeclaims") {
		t.Errorf("lists %v, want one of claims", lists)
	}
}

// latecomer does something once, when the answer to the first list of its path is on its way: after what the list
// shows, before anybody watches. Watches begin once listed is closed.
type latecomer struct {
	next   http.RoundTripper
	listed chan struct{}
	mu     sync.Mutex
	does   map[string]func() // by path
}

func (l *latecomer) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Get("watch") == "true" {
		select {
		case <-l.listed:
		case <-req.Context().Done():
		}
		return l.next.RoundTrip(req)
	}
	resp, err := l.next.RoundTrip(req)
	if err != nil || req.Method != http.MethodGet {
		return resp, err
	}
	l.mu.Lock()
	do := l.does[req.URL.Path]
	delete(l.does, req.URL.Path)
	l.mu.Unlock()
	if do != nil {
		do()
	}
	return resp, nil
}

// What comes while everything is listed is in no list. The watches begin where the lists ended, so that they tell of
// it: who waits is woken, and the next look shows it without a list. What is looked at in part meanwhile takes nothing
// of that away.
func TestCacheShowsWhatCameWhileItListed(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	other, _ := c.client(t)
	c.addNode(t, c.name)
	n := c.readyNode(t, other, c.name)
	claim := c.addClaim(t, other)
	late := &latecomer{listed: make(chan struct{}), does: map[string]func(){
		"/api/v1/pods": func() {
			c.addPod(t, "web", "", func(p *corev1.Pod) { p.Spec.NodeSelector = map[string]string{"kubetest": "nowhere"} })
		},
		"/api/v1/nodes":                    func() { must(t, other.TaintForTermination(t.Context(), n)) },
		"/apis/karpenter.sh/v1/nodeclaims": func() { must(t, other.DeleteClaim(t.Context(), claim)) },
	}}
	r := &recorder{}
	k, _ := c.clientWith(t, func(config *kube.Config) {
		config.Wrap = func(next http.RoundTripper) http.RoundTripper { late.next, r.next = next, late; return r }
	})
	m := k.NewClusterCache()
	resume(t, m)
	if got := changesOf(snapshotOf(t, m), c.name, n, claim); got != "" {
		t.Fatalf("a list shows %s, which came after it", got)
	}
	r.take()
	close(late.listed)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := m.Wait(ctx); err != nil {
		t.Fatalf("%v, want to wake", err)
	}
	if _, err := m.ListClaims(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Wait(ctx); err != nil {
		t.Errorf("after a look at claims alone: %v, want to wake still", err)
	}
	eventually(t, "all three to be shown", func(context.Context) (string, bool) {
		got := changesOf(snapshotOf(t, cached{m}), c.name, n, claim)
		return got, got == "pod node claim"
	})
	if got := r.takeEarlyLists(); len(got) > 0 {
		t.Errorf("lists: %v, want none", got)
	}
}

// changesOf says which shows: the pod in the namespace, the taint of the node, the deletion of the claim.
func changesOf(s cluster.Snapshot, namespace string, n cluster.Node, claim cluster.Claim) string {
	var out []string
	if slices.ContainsFunc(s.Pods, func(p cluster.Pod) bool { return p.Namespace == namespace }) {
		out = append(out, "pod")
	}
	if slices.ContainsFunc(s.Nodes, func(have cluster.Node) bool { return have.UID == n.UID && len(have.Taints) > 0 }) {
		out = append(out, "node")
	}
	if slices.ContainsFunc(s.Claims, func(have cluster.Claim) bool { return have.UID == claim.UID && !have.Deleting.IsZero() }) {
		out = append(out, "claim")
	}
	return strings.Join(out, " ")
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// A burst of launches leaves many claims that do not say their instance. Of these a notice about a state needs one, a
// warning all.
func TestClaimsOfAnInstanceThatNobodyNames(t *testing.T) {
	c := newEnv(t)
	c.applyText(t, classText)
	c.applyText(t, poolText)
	k, r := c.client(t)
	const many = 12
	for range many {
		c.addClaim(t, k)
	}
	mine := func(all []cluster.Claim) (n int) {
		for _, one := range all {
			if one.Pool == c.name {
				n++
			}
		}
		return n
	}
	for _, w := range []struct {
		name     string
		enough   func(cluster.Claim) bool
		claims   func(int) bool
		requests int
	}{
		{"all", nil, func(n int) bool { return n == many }, 3},
		{"none is enough", func(cluster.Claim) bool { return false }, func(n int) bool { return n == many }, 4},
		{"the first is enough", func(cluster.Claim) bool { return true }, func(n int) bool { return n > 0 && n <= 10 }, 3},
	} {
		r.take()
		got, err := k.ClaimsOf(t.Context(), []string{"i-0123456789abcdef0"}, w.enough)
		if calls := r.take(); err != nil || !w.claims(mine(got)) || len(calls) != w.requests {
			t.Errorf("%s: %d claims by %v, %v; want %d requests", w.name, mine(got), calls, err, w.requests)
		}
	}
}
