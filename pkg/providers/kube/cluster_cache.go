package kube

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	// How old a proof may be on which CachedSnapshot relies. Ten seconds is the shortest time after which an instance
	// without a claim counts as leaked.
	maxProofAge       = 30 * time.Second
	maxProofAgeClaims = 10 * time.Second
	// maxConfigurationAge is the largest age, for CachedSnapshot, of the objects that people write.
	maxConfigurationAge = 5 * time.Second
	// longestFrozen is the longest time that an invocation may lie back from whose end the next one goes on.
	longestFrozen = 30 * time.Minute
	// catchUp is the time that watches may take to show what was written; a small list takes no longer as a rule.
	catchUp = time.Second
	// endingTakes is the time that an invocation must have left when its cache is frozen.
	endingTakes = time.Second
)

// ClusterCache is a Client that keeps pods, nodes and claims from one invocation of a process to the next, so that a
// look at a large cluster costs what changed since. It is used by one invocation at a time, from Resume to Freeze: see
// followedKind for what happens to a kind in between.
//
// What it shows is never older than what was written through its Client. ReadSnapshot shows everything that was stored
// before the pass began, CachedSnapshot and ListClaims what was stored before the invocation began and what watches
// told since. The pods of a snapshot are gone when the next invocation begins.
type ClusterCache struct {
	*Client
	inUse sync.Mutex // by an invocation

	ctx  context.Context
	stop context.CancelFunc // of the watches; nil while it is frozen
	work sync.WaitGroup

	mu      sync.Mutex
	kinds   []*followedKind
	objects cachedObjects
	resumed time.Time
	rest    configuration // as it was at restAt
	restAt  time.Time
	frozen  time.Time     // by the wall clock
	invalid time.Time     // nothing that was proven before then counts
	pass    cachePass     // that is under way
	moved   chan struct{} // closed when something was told or became known
	news    bool          // since the last snapshot
	staying bool          // somebody waits for changes

	Checkpoints *Checkpoints // of what it knows, for processes that start
}

// cachedObjects holds the kinds of which there is much, by UID.
type cachedObjects struct {
	pods    map[string]*translate.ListedPod
	sorted  translate.SortedPods // as they were when those changed that stand below
	changed map[string]bool
	nodes   map[string]cluster.Node
	claims  map[string]cluster.Claim
	memory  *podMemory // nil for none that is used again
}

// NewClusterCache makes a cache that knows nothing. It makes no request.
func (c *Client) NewClusterCache() *ClusterCache {
	m := &ClusterCache{Client: c, moved: make(chan struct{}), objects: cachedObjects{memory: &podMemory{}}}
	m.Checkpoints = &Checkpoints{cache: m, one: make(chan struct{}, 1)}
	m.kinds = []*followedKind{newPodKind(m), newNodeKind(m), newClaimKind(m)}
	return m
}

// Resume begins an invocation, the context of which it is. Where much is known of a kind, its watch goes on from where
// the last invocation ended. It waits until another invocation in this process has ended.
func (m *ClusterCache) Resume(ctx context.Context) {
	m.inUse.Lock()
	m.ctx, m.stop = context.WithCancel(ctx)
	m.own.forgetSeen()
	m.objects.memory.endInvocation()
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	// By the wall clock: the monotonic one may stand still while the process is frozen.
	if age := now.Round(0).Sub(m.frozen); age < 0 || age > longestFrozen {
		for _, k := range m.kinds {
			k.version = 0
		}
	}
	m.resumed, m.invalid, m.news, m.staying = now, time.Time{}, false, false
	m.pass.endPass()
	m.Checkpoints.asked = false
	for _, k := range m.kinds {
		k.proven, k.breaks, k.wanted, k.aims = time.Time{}, 0, 0, nil
		m.work.Go(func() { m.follow(m.ctx, k) })
		if k.isMuch() { // or it would fall behind in invocations that need nothing of it
			k.wanted = k.version + 1 // the first watch proves it, as a rule
			m.work.Go(func() { _ = m.proveKind(m.ctx, k, now) })
		}
	}
}

// Freeze ends an invocation: the watches are closed, and what they told is kept. It waits for the first proof of each
// kind of which there is much, which takes some seconds at most, as long as the invocation has time left.
func (m *ClusterCache) Freeze() {
	end := time.Now().Add(proveWithin)
	if last, ok := m.ctx.Deadline(); ok && last.Add(-endingTakes).Before(end) {
		end = last.Add(-endingTakes)
	}
	limit, cancel := context.WithDeadline(m.ctx, end)
	defer cancel()
	for _, k := range m.kinds {
		m.await(limit, func() bool { return k.version == 0 || !k.isMuch() || !k.proven.Before(m.resumed) })
	}
	m.stop()
	m.work.Wait()
	m.stop = nil
	m.mu.Lock()
	m.frozen = time.Now().Round(0)
	m.mu.Unlock()
	m.inUse.Unlock()
}

// Invalidate has the next look see what anybody wrote before this call. It may be called at any time.
func (m *ClusterCache) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.invalid, m.news = time.Now(), true
	m.notifyWaiters()
}

// Acquire does what that of the Client does. Unless nobody else can have held the lease meanwhile, the next look shows
// what they wrote.
func (m *ClusterCache) Acquire(ctx context.Context, name, holder string,
	ttl time.Duration) (release func(context.Context) error, ok bool, err error) {
	release, ok, alone, err := m.acquireExclusive(ctx, name, holder, ttl)
	if ok && !alone {
		m.Invalidate()
	}
	return release, ok, err
}

// WatchLease is a lease whose holder others rely on to look again, after it gave the lease back too.
type WatchLease struct{ *ClusterCache }

// Acquire does what that of the Client does. After the release the next look shows what others wrote until then.
func (v WatchLease) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error,
	bool, error) {
	release, ok, err := v.Client.Acquire(ctx, name, holder, ttl)
	if !ok || err != nil {
		return release, ok, err
	}
	return func(ctx context.Context) error {
		defer v.Invalidate()
		return release(ctx)
	}, true, nil
}

// ReadSnapshot reads as the Client does: it shows everything that was stored before it is called or, if the pass asked
// for PendingPods first, before it did that.
func (m *ClusterCache) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	m.mu.Lock()
	since := m.pass.endPass()
	m.mu.Unlock()
	if since.IsZero() {
		since = time.Now()
	}
	return m.snapshotSince(ctx, func(*followedKind) time.Time { return since }, m.listConfiguration)
}

// CachedSnapshot is a snapshot that may be some seconds old, but for what was written through this Client and what
// was stored before the invocation began. It is enough to find out that there is nothing to do, and for writes that are
// refused when the object has changed.
func (m *ClusterCache) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return m.snapshotSince(ctx, m.recently, m.recentConfiguration)
}

// recently returns the time at which the proof must have begun on which a look relies that may be some seconds old.
// What no watch tells of is not known from before.
func (m *ClusterCache) recently(k *followedKind) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	switch since := now.Add(-k.maxAge); {
	case !m.isFollowed(k):
		return now
	case since.After(m.resumed):
		return since
	}
	return m.resumed
}

func (m *ClusterCache) snapshotSince(ctx context.Context, since func(*followedKind) time.Time,
	rest func(context.Context) (configuration, error)) (cluster.Snapshot, error) {
	take := func() cachedObjects {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.news = false // only what comes later is
		return m.objects.takeSnapshot()
	}
	much := func(ctx context.Context) (func() cachedObjects, error) { return take, m.prove(ctx, m.kinds, since) }
	return m.buildSnapshot(ctx, much, rest)
}

// listConfiguration lists as the Client does, and remembers it.
func (m *ClusterCache) listConfiguration(ctx context.Context) (configuration, error) {
	began := time.Now()
	out, err := m.Client.listConfiguration(ctx)
	if err == nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.rest, m.restAt = out, began
	}
	return out, err
}

// recentConfiguration returns what was listed some seconds ago in this invocation, unless this process wrote any of it
// since or others must be seen; else it is listed.
func (m *ClusterCache) recentConfiguration(ctx context.Context) (configuration, error) {
	m.mu.Lock()
	out, at := m.rest, m.restAt
	recent := time.Since(at) < maxConfigurationAge && at.After(m.resumed) && at.After(m.invalid)
	m.mu.Unlock()
	if recent && at.After(m.own.lastOther()) {
		return out, nil
	}
	return m.listConfiguration(ctx)
}

// PendingPods lists as the Client does. It begins a pass.
func (m *ClusterCache) PendingPods(ctx context.Context) (out []cluster.Pod, err error) {
	began, pods := time.Now(), m.kinds[0]
	if m.isProven(pods, m.recently(pods)) {
		if out, err = m.cachedPending(ctx); err != nil {
			return nil, err
		}
	} else if out, err = m.Client.PendingPods(ctx); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case len(out) == 0:
		m.pass = cachePass{began: began} // until ListClaims tells of pods that must move
	case !m.pass.ahead:
		m.pass.began = began
		m.pass.proveAhead(m)
	}
	return out, nil
}

func (m *ClusterCache) cachedPending(ctx context.Context) ([]cluster.Pod, error) {
	out, err := m.listVirtualPods(ctx)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	waiting := findWaiting(m.objects.pods)
	m.seen.notePending(waiting)
	out = append(out, waiting...)
	slices.SortFunc(out, translate.ComparePods)
	return out, nil
}

// ListClaims lists as the Client does. What others did may be some seconds old, but not what they did before the
// invocation began.
func (m *ClusterCache) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	if err := m.prove(ctx, m.kinds[2:], m.recently); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	out := m.objects.sortedClaims()
	if !m.pass.began.IsZero() && !m.pass.ahead && cluster.AnyDeleted(out) {
		m.pass.proveAhead(m)
	}
	return out, nil
}

// prove has everything in the cache of these kinds that was stored before the time given.
func (m *ClusterCache) prove(ctx context.Context, kinds []*followedKind, since func(*followedKind) time.Time) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, k := range kinds {
		g.Go(func() error { return m.proveKind(gctx, k, since(k)) })
	}
	return g.Wait()
}

// Wait waits as the Client does, by the watches of the cache. As long as not every kind was looked at it is that of the
// Client.
func (m *ClusterCache) Wait(ctx context.Context) error {
	if !m.beginStay() {
		return m.Client.Wait(ctx)
	}
	for {
		m.mu.Lock()
		awake, moved := m.news, m.moved
		m.mu.Unlock()
		if awake {
			waitBeforeRetry(ctx, debounce)
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// beginStay has every kind watched. It reports false as long as one is unknown that nobody has asked for.
func (m *ClusterCache) beginStay() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pass.endPass()
	for _, k := range m.kinds {
		if k.version == 0 && !m.news || k.breaks >= maxBreaks { // unknown, or not to be watched
			return false
		}
	}
	if !m.staying {
		m.staying = true
		m.notifyWaiters()
	}
	return true
}

// await waits until what is asked under the lock is so, as long as the context goes.
func (m *ClusterCache) await(ctx context.Context, done func() bool) bool {
	for {
		m.mu.Lock()
		ok, moved := done(), m.moved
		m.mu.Unlock()
		if ok {
			return true
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return false
		}
	}
}

// notifyWaiters wakes who waits. The lock is held.
func (m *ClusterCache) notifyWaiters() {
	close(m.moved)
	m.moved = make(chan struct{})
}

// takeSnapshot returns what is kept, with sorted pods, which are kept too: most are the same next time.
func (b *cachedObjects) takeSnapshot() cachedObjects {
	b.sorted = b.sorted.Update(b.changed, b.pods)
	clear(b.changed)
	return cachedObjects{sorted: b.sorted, nodes: maps.Clone(b.nodes), claims: maps.Clone(b.claims), memory: b.memory}
}

func (b cachedObjects) sortedClaims() []cluster.Claim {
	return slices.SortedFunc(maps.Values(b.claims),
		func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
}

func (b cachedObjects) sortedNodes() []cluster.Node {
	return slices.SortedFunc(maps.Values(b.nodes),
		func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
}
