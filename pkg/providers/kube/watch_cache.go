package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	karpv1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
	"joiner/pkg/nodeclass/translate"
)

const (
	// listAgain bounds how old what a mirror shows can be at worst, should a watch fall silent without breaking. Of
	// claims, it is the shortest time after which an instance without one counts as leaked; an own write that came back
	// proves that they are newer.
	listAgain       = 30 * time.Second
	listAgainClaims = 10 * time.Second
	// catchUp is how long watches may take to show what was written; listing does not take longer as a rule.
	catchUp = time.Second
)

// WatchCache is a Client that lists pods, nodes and claims once and then follows them by watches, so that a look at a
// large cluster costs what changed and not what there is. It is for one invocation, at the end of which it is closed.
//
// What it shows is never older than what was written through its Client. It lists anew after half a minute, when a
// watch broke or is late, and when Forget says that others rely on a look that comes after what they wrote. Without a
// Snapshot before, Wait is that of the Client.
type WatchCache struct {
	*Client
	ctx  context.Context
	stop context.CancelFunc // of the watches; nil while there are none
	work sync.WaitGroup

	mu     sync.Mutex
	known  cachedObjects     // sorted by nothing
	at     map[string]uint64 // by plural: the version up to which it is known
	listed time.Time
	proven time.Time     // claims are known as they were then, or newer
	moved  chan struct{} // closed when something was told
	news   bool          // since the last Snapshot
	broken bool          // a watch ended: what is known ages
	breaks int
}

// cachedObjects is what there is much of, by UID.
type cachedObjects struct {
	pods     map[string]translate.ListedPod
	nodes    map[string]cluster.Node
	claims   map[string]cluster.Claim
	versions map[string]string // by plural
}

// NewWatchCache makes a mirror for an invocation. It makes no request. The context must live as long as the mirror is
// used.
func (c *Client) NewWatchCache(ctx context.Context) *WatchCache {
	return &WatchCache{Client: c, ctx: ctx, moved: make(chan struct{})}
}

// Close ends the watches.
func (m *WatchCache) Close() {
	if m.stop != nil {
		m.stop()
		m.stop = nil
	}
	m.work.Wait()
	m.own.endList()
}

// Invalidate has the next look list everything anew: it sees what anybody wrote before this call. It may be called at
// any time.
func (m *WatchCache) Invalidate() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = true
	m.notifyWaiters()
}

// Acquire is that of the Client. Unless nobody else can have held the lease meanwhile, the next look shows what they
// wrote.
func (m *WatchCache) Acquire(ctx context.Context, name, holder string,
	ttl time.Duration) (release func(context.Context) error, ok bool, err error) {
	release, ok, alone, err := m.acquireExclusive(ctx, name, holder, ttl)
	if ok && !alone {
		m.Invalidate()
	}
	return release, ok, err
}

// WatchLease is a lease whose holder others rely on to look again, after it gave the lease back too.
type WatchLease struct{ *WatchCache }

// Acquire is that of the Client. After the release the next look shows what others wrote until then.
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

// ReadSnapshot is that of the Client.
func (m *WatchCache) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return m.buildSnapshot(ctx, m.cachedOrListed)
}

// PendingPods is that of the Client.
func (m *WatchCache) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	b, ok := m.currentObjects(ctx, false)
	if !ok {
		return m.Client.PendingPods(ctx)
	}
	out, err := m.listVirtualPods(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range b.pods {
		if p.Pod.Provisionable() {
			out = append(out, p.Pod)
		}
	}
	slices.SortFunc(out, translate.ComparePods)
	return out, nil
}

// ListClaims is that of the Client.
func (m *WatchCache) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	if b, ok := m.currentObjects(ctx, false); ok {
		return b.sortedClaims(), nil
	}
	return m.Client.ListClaims(ctx)
}

// cachedOrListed is what is known, or a new list.
func (m *WatchCache) cachedOrListed(ctx context.Context) (cachedObjects, error) {
	if b, ok := m.currentObjects(ctx, true); ok {
		return b, nil
	}
	m.Close()
	m.own.beginList()
	began := time.Now()
	b, err := m.listEverything(ctx)
	if err != nil {
		return cachedObjects{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.known, m.at, m.listed, m.proven, m.news, m.broken = b, map[string]uint64{}, began, began, false, false
	for plural, version := range b.versions {
		if m.at[plural], err = strconv.ParseUint(version, 10, 64); err != nil {
			m.broken, m.breaks = true, maxBreaks // versions that cannot be compared
		}
	}
	return b.cloneMaps(), nil
}

// currentObjects is what is known, if it holds all that this client wrote. With all of it looked at, only what comes
// later is news.
func (m *WatchCache) currentObjects(ctx context.Context, all bool) (cachedObjects, bool) {
	if m.stop == nil {
		return cachedObjects{}, false
	}
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	for {
		m.mu.Lock()
		last, ok := m.own.allObserved(m.at)
		if began := last[claimPath().plural].began; ok && began.After(m.proven) {
			m.proven = began
		}
		if m.isStale() {
			m.mu.Unlock()
			return cachedObjects{}, false
		}
		if ok {
			defer m.mu.Unlock()
			m.news = m.news && !all
			return m.known.cloneMaps(), true
		}
		moved := m.moved
		m.mu.Unlock()
		select {
		case <-moved:
		case <-ctx.Done():
			return cachedObjects{}, false
		}
	}
}

// isStale reports whether what is known must not be used any more. The lock is held.
func (m *WatchCache) isStale() bool {
	return m.broken || time.Since(m.listed) > listAgain || time.Since(m.proven) > listAgainClaims
}

// Wait is that of the Client, by the watches that go on.
func (m *WatchCache) Wait(ctx context.Context) error {
	if !m.openWatches() {
		return m.Client.Wait(ctx)
	}
	for {
		m.mu.Lock()
		awake, moved := m.news || m.broken, m.moved
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

// openWatches opens the watches where the last list ended, unless they are open. It reports whether there are any.
func (m *WatchCache) openWatches() bool {
	if m.stop != nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.at == nil || m.broken || m.breaks >= maxBreaks || time.Since(m.listed) > listAgain {
		return false
	}
	ctx, stop := context.WithCancel(m.ctx)
	m.stop = stop
	for _, w := range []watched{
		{place: podPath(), fields: notEnded, news: m.podNews},
		{place: nodePath(), news: m.nodeNews},
		{place: claimPath(), news: m.claimNews},
	} {
		from := m.known.versions[w.place.plural]
		w.from = func() string { return from }
		take := w.news
		w.news = func(e watch.Event) bool { return m.applyWatchEvent(ctx, w.place, e, take) }
		m.work.Go(func() {
			err := m.watchOnce(ctx, w)
			m.mu.Lock()
			defer m.mu.Unlock()
			if ctx.Err() != nil {
				return
			}
			m.broken = true
			if m.breaks++; errors.Is(err, changedError{}) {
				m.breaks = maxBreaks // what it tells cannot be understood
			}
			m.notifyWaiters()
		})
	}
	return true
}

// applyWatchEvent takes what a watch tells. It reports true when the watch is of no use.
func (m *WatchCache) applyWatchEvent(ctx context.Context, p apiPath, e watch.Event, take func(watch.Event) bool) bool {
	o, ok := e.Object.(metav1.Object)
	if !ok {
		return true
	}
	at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return true
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if ctx.Err() != nil {
		return false // what is known is another list's by now
	}
	if take(e) {
		m.news = true
	}
	m.at[p.plural] = at
	switch {
	case e.Type == watch.Deleted:
		m.own.noteEvent(o.GetUID(), gone)
	case o.GetDeletionTimestamp() != nil:
		m.own.noteEvent(o.GetUID(), ending)
	}
	m.notifyWaiters()
	return false
}

// notifyWaiters wakes who waits. The lock is held.
func (m *WatchCache) notifyWaiters() {
	close(m.moved)
	m.moved = make(chan struct{})
}

func (m *WatchCache) podNews(e watch.Event) bool {
	if p, ok := e.Object.(*corev1.Pod); ok {
		keepNewest(m.known.pods, e.Type, p.UID, func() translate.ListedPod { return translate.ListPod(p) })
	}
	return m.seen.podNews(e)
}

func (m *WatchCache) nodeNews(e watch.Event) bool {
	if n, ok := e.Object.(*corev1.Node); ok {
		keepNewest(m.known.nodes, e.Type, n.UID, func() cluster.Node { return translate.Node(n) })
	}
	return m.seen.nodeNews(e)
}

func (m *WatchCache) claimNews(e watch.Event) bool {
	if n, ok := e.Object.(*karpv1.NodeClaim); ok && translate.IsOurClass(n.Spec.NodeClassRef) {
		keepNewest(m.known.claims, e.Type, n.UID, func() cluster.Claim { return translate.Claim(n) })
		if e.Type != watch.Deleted && e.Type != watch.Bookmark {
			m.seen.keepStatus(n)
		}
	}
	return m.seen.claimNews(e)
}

func keepNewest[T any](in map[string]T, what watch.EventType, uid types.UID, made func() T) {
	switch what {
	case watch.Deleted:
		delete(in, string(uid))
	case watch.Added, watch.Modified:
		in[string(uid)] = made()
	}
}

func (b cachedObjects) cloneMaps() cachedObjects {
	return cachedObjects{pods: maps.Clone(b.pods), nodes: maps.Clone(b.nodes), claims: maps.Clone(b.claims),
		versions: b.versions}
}

func (b cachedObjects) sortedClaims() []cluster.Claim {
	return slices.SortedFunc(maps.Values(b.claims),
		func(a, b cluster.Claim) int { return strings.Compare(a.Name, b.Name) })
}

func (b cachedObjects) sortedNodes() []cluster.Node {
	return slices.SortedFunc(maps.Values(b.nodes),
		func(a, b cluster.Node) int { return strings.Compare(a.Name, b.Name) })
}
