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
	cache := &ClusterCache{Client: c, moved: make(chan struct{}), objects: cachedObjects{memory: &podMemory{}}}
	cache.Checkpoints = &Checkpoints{cache: cache, one: make(chan struct{}, 1)}
	cache.kinds = []*followedKind{newPodKind(cache), newNodeKind(cache), newClaimKind(cache)}
	return cache
}

// Resume begins an invocation, the context of which it is. Where much is known of a kind, its watch goes on from where
// the last invocation ended. It waits until another invocation in this process has ended.
func (c *ClusterCache) Resume(ctx context.Context) {
	c.inUse.Lock()
	c.ctx, c.stop = context.WithCancel(ctx)
	c.own.forgetSeen()
	c.objects.memory.endInvocation()
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	// By the wall clock: the monotonic one may stand still while the process is frozen.
	if age := now.Round(0).Sub(c.frozen); age < 0 || age > longestFrozen {
		for _, k := range c.kinds {
			k.version = 0
		}
	}
	c.resumed, c.invalid, c.news, c.staying = now, time.Time{}, false, false
	c.pass.endPass()
	c.Checkpoints.asked = false
	for _, k := range c.kinds {
		k.proven, k.breaks, k.wanted, k.aims = time.Time{}, 0, 0, nil
		c.work.Go(func() { c.follow(c.ctx, k) })
		if k.isMuch() { // or it would fall behind in invocations that need nothing of it
			k.wanted = k.version + 1 // the first watch proves it, as a rule
			c.work.Go(func() { _ = c.proveKind(c.ctx, k, now) })
		}
	}
}

// Freeze ends an invocation: the watches are closed, and what they told is kept. It waits for the first proof of each
// kind of which there is much, which takes some seconds at most, as long as the invocation has time left.
func (c *ClusterCache) Freeze() {
	end := time.Now().Add(proveWithin)
	if last, ok := c.ctx.Deadline(); ok && last.Add(-endingTakes).Before(end) {
		end = last.Add(-endingTakes)
	}
	limit, cancel := context.WithDeadline(c.ctx, end)
	defer cancel()
	for _, k := range c.kinds {
		c.await(limit, func() bool { return k.version == 0 || !k.isMuch() || !k.proven.Before(c.resumed) })
	}
	c.stop()
	c.work.Wait()
	c.stop = nil
	c.mu.Lock()
	c.frozen = time.Now().Round(0)
	c.mu.Unlock()
	c.inUse.Unlock()
}

// Invalidate has the next look see what anybody wrote before this call. It may be called at any time.
func (c *ClusterCache) Invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalid, c.news = time.Now(), true
	c.notifyWaiters()
}

// Acquire does what that of the Client does. Unless nobody else can have held the lease meanwhile, the next look shows
// what they wrote.
func (c *ClusterCache) Acquire(ctx context.Context, name, holder string,
	ttl time.Duration) (release func(context.Context) error, ok bool, err error) {
	release, ok, alone, err := c.acquireExclusive(ctx, name, holder, ttl)
	if ok && !alone {
		c.Invalidate()
	}
	return release, ok, err
}

// WatchLease is a lease whose holder others rely on to look again, after it gave the lease back too.
type WatchLease struct{ *ClusterCache }

// Acquire does what that of the Client does. After the release the next look shows what others wrote until then.
func (l WatchLease) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error,
	bool, error) {
	release, ok, err := l.Client.Acquire(ctx, name, holder, ttl)
	if !ok || err != nil {
		return release, ok, err
	}
	return func(ctx context.Context) error {
		defer l.Invalidate()
		return release(ctx)
	}, true, nil
}

// ReadSnapshot reads as the Client does: it shows everything that was stored before it is called or, if the pass asked
// for PendingPods first, before it did that.
func (c *ClusterCache) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	c.mu.Lock()
	since := c.pass.endPass()
	c.mu.Unlock()
	if since.IsZero() {
		since = time.Now()
	}
	return c.snapshotSince(ctx, func(*followedKind) time.Time { return since }, c.listConfiguration)
}

// CachedSnapshot is a snapshot that may be some seconds old, but for what was written through this Client and what
// was stored before the invocation began. It is enough to find out that there is nothing to do, and for writes that are
// refused when the object has changed.
func (c *ClusterCache) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return c.snapshotSince(ctx, c.recently, c.recentConfiguration)
}

// recently returns the time at which the proof must have begun on which a look relies that may be some seconds old.
// What no watch tells of is not known from before.
func (c *ClusterCache) recently(k *followedKind) time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := time.Now()
	switch since := now.Add(-k.maxAge); {
	case !c.isFollowed(k):
		return now
	case since.After(c.resumed):
		return since
	}
	return c.resumed
}

func (c *ClusterCache) snapshotSince(ctx context.Context, since func(*followedKind) time.Time,
	rest func(context.Context) (configuration, error)) (cluster.Snapshot, error) {
	take := func() cachedObjects {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.news = false // only what comes later is
		return c.objects.takeSnapshot()
	}
	much := func(ctx context.Context) (func() cachedObjects, error) { return take, c.prove(ctx, c.kinds, since) }
	return c.buildSnapshot(ctx, much, rest)
}

// listConfiguration lists as the Client does, and remembers it.
func (c *ClusterCache) listConfiguration(ctx context.Context) (configuration, error) {
	began := time.Now()
	out, err := c.Client.listConfiguration(ctx)
	if err == nil {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.rest, c.restAt = out, began
	}
	return out, err
}

// recentConfiguration returns what was listed some seconds ago in this invocation, unless this process wrote any of it
// since or others must be seen; else it is listed.
func (c *ClusterCache) recentConfiguration(ctx context.Context) (configuration, error) {
	c.mu.Lock()
	out, at := c.rest, c.restAt
	recent := time.Since(at) < maxConfigurationAge && at.After(c.resumed) && at.After(c.invalid)
	c.mu.Unlock()
	if recent && at.After(c.own.lastOther()) {
		return out, nil
	}
	return c.listConfiguration(ctx)
}

// PendingPods lists as the Client does. It begins a pass.
func (c *ClusterCache) PendingPods(ctx context.Context) (out []cluster.Pod, err error) {
	began, pods := time.Now(), c.kinds[0]
	if c.isProven(pods, c.recently(pods)) {
		if out, err = c.cachedPending(ctx); err != nil {
			return nil, err
		}
	} else if out, err = c.Client.PendingPods(ctx); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case len(out) == 0:
		c.pass = cachePass{began: began} // until ListClaims tells of pods that must move
	case !c.pass.ahead:
		c.pass.began = began
		c.pass.proveAhead(c)
	}
	return out, nil
}

func (c *ClusterCache) cachedPending(ctx context.Context) ([]cluster.Pod, error) {
	out, err := c.listVirtualPods(ctx)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	waiting := findWaiting(c.objects.pods)
	c.seen.notePending(waiting)
	out = append(out, waiting...)
	slices.SortFunc(out, translate.ComparePods)
	return out, nil
}

// ListClaims lists as the Client does. What others did may be some seconds old, but not what they did before the
// invocation began.
func (c *ClusterCache) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	if err := c.prove(ctx, c.kinds[2:], c.recently); err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.objects.sortedClaims()
	if !c.pass.began.IsZero() && !c.pass.ahead && cluster.AnyDeleted(out) {
		c.pass.proveAhead(c)
	}
	return out, nil
}

// prove has everything in the cache of these kinds that was stored before the time given.
func (c *ClusterCache) prove(ctx context.Context, kinds []*followedKind, since func(*followedKind) time.Time) error {
	g, gctx := errgroup.WithContext(ctx)
	for _, k := range kinds {
		g.Go(func() error { return c.proveKind(gctx, k, since(k)) })
	}
	return g.Wait()
}

// Wait waits as the Client does, by the watches of the cache. As long as not every kind was looked at it is that of the
// Client.
func (c *ClusterCache) Wait(ctx context.Context) error {
	if !c.beginStay() {
		return c.Client.Wait(ctx)
	}
	for {
		c.mu.Lock()
		awake, moved := c.news, c.moved
		c.mu.Unlock()
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
func (c *ClusterCache) beginStay() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.pass.endPass()
	for _, k := range c.kinds {
		if k.version == 0 && !c.news || k.breaks >= maxBreaks { // unknown, or not to be watched
			return false
		}
	}
	if !c.staying {
		c.staying = true
		c.notifyWaiters()
	}
	return true
}

// await waits until what is asked under the lock is so, as long as the context goes.
func (c *ClusterCache) await(ctx context.Context, done func() bool) bool {
	for {
		c.mu.Lock()
		ok, moved := done(), c.moved
		c.mu.Unlock()
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
func (c *ClusterCache) notifyWaiters() {
	close(c.moved)
	c.moved = make(chan struct{})
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
