package kube

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	karpv1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclass/translate"
)

const (
	// proveSeconds is the length of a watch that is to end in a bookmark soon: the API server sends one two seconds
	// before the end, on a tick of about one second, and none in watches of two seconds or less.
	proveSeconds = 3
	// proveWithin is the wait for such a bookmark; after that a list is quicker, unless the last one took longer.
	proveWithin = 4 * time.Second
	// mostAims caps the revisions that are read for one proof, because what it has to prove became later.
	mostAims = 3
	// the most objects of a kind that are listed to prove something, which is as cheap as to wait for a bookmark
	fewPods   = 1000
	fewNodes  = 150
	fewClaims = 150
)

// followedKind holds what a ClusterCache knows of one kind of object. It is in one of these states:
//
//	unknown    nothing may be believed of it; the next look lists, or takes over a checkpoint, as if frozen.
//	listed     everything up to a version is known: that of a list, or of the last event.
//	following  a watch tells what comes after the version. When it ends, another goes on from the last event.
//	frozen     there is no watch between two invocations; it goes on as if it had just ended.
//	catching up the store's revision was read; a watch of three seconds tells what is missing, and a bookmark comes
//	           within two that says how far the API server's own cache has got.
//	proven     that bookmark, or any event, has reached the revision: everything is known that was stored before it
//	           was read. So does an own write that was told back. From then on the proof ages.
//
// A silent watch proves nothing. It becomes unknown when the API server does not know its version any more (410 Gone),
// when watches keep breaking, when an event cannot be understood or a version not compared, when the store's revision
// is lower than the version, and after too long a freeze. A proof that does not come in time is replaced by a list, as
// is one of a kind of which there are few.
type followedKind struct {
	place  apiPath
	fields string        // field selector
	maxAge time.Duration // of a proof that is enough for looks that may be some seconds old
	few    int           // so many are listed rather than proven by a watch
	// list reads all; keep replaces what is known, under the lock of the cache.
	list func(context.Context) (version string, keep func(), err error)
	// unfinished is the list where one that was cut short goes on, nil where each begins anew. One proves or lists.
	unfinished unfinishedList
	take       func(watch.Event) (news bool) // takes an event, under the lock of the cache
	// restore replaces what is known by what a checkpoint holds, up to that version, under the lock of the cache.
	restore func(c *checkpoint, version string)
	size    func() int

	one chan struct{} // held by who proves or lists

	// under the lock of the cache
	version uint64             // everything up to it is known; 0 for unknown
	proven  time.Time          // everything that was stored before then is known
	wanted  uint64             // until the version is that far, watches are to end in a bookmark soon
	short   bool               // the watch that is open does, and has not told of one yet
	restart context.CancelFunc // of the watch that is open
	breaks  int                // of watches, since one told something
	took    time.Duration      // the last list
	// when a checkpoint was taken over that no list has confirmed since; zero for none
	restored time.Time
	gone     uint64          // no watch can begin at it any more
	aims     []storeRevision // what a bookmark that is waited for is to prove as well
}

// unfinishedList is a list that may have been cut short. See pagedList.
type unfinishedList interface {
	goesOn() (began time.Time, ok bool)
	forget()
}

func newPodKind(c *ClusterCache) *followedKind {
	k := &followedKind{place: podPath(), fields: notEnded, maxAge: maxProofAge, few: fewPods,
		restore: c.Checkpoints.restorePods, one: make(chan struct{}, 1)}
	k.size = func() int { return len(c.objects.pods) }
	pages := c.pods().newPodPages()
	k.unfinished = pages
	k.list = func(ctx context.Context) (string, func(), error) {
		all, version, err := c.pods().readPods(ctx, pages)
		sorted := translate.SortPods(maps.Values(all))
		return version, func() {
			c.objects.pods, c.objects.sorted, c.objects.changed = all, sorted, map[string]bool{}
		}, err
	}
	k.take = func(e watch.Event) bool {
		if p, ok := e.Object.(*corev1.Pod); ok {
			c.objects.changed[string(p.UID)] = true
			keepNewest(c.objects.pods, e.Type, p.UID, func() *translate.ListedPod { return c.shapes.ListPod(p) })
		}
		return c.seen.podNews(e)
	}
	return k
}

func newNodeKind(c *ClusterCache) *followedKind {
	k := &followedKind{place: nodePath(), maxAge: maxProofAge, few: fewNodes, restore: c.Checkpoints.restoreNodes,
		one: make(chan struct{}, 1)}
	k.size = func() int { return len(c.objects.nodes) }
	k.list = func(ctx context.Context) (string, func(), error) {
		all, version, err := c.nodes().allNodes(ctx)
		return version, func() { c.objects.nodes = lists.Index(all, func(n cluster.Node) string { return n.UID }) }, err
	}
	k.take = func(e watch.Event) bool {
		if n, ok := e.Object.(*corev1.Node); ok {
			keepNewest(c.objects.nodes, e.Type, n.UID, func() cluster.Node { return translate.Node(n) })
		}
		return c.seen.nodeNews(e)
	}
	return k
}

func newClaimKind(c *ClusterCache) *followedKind {
	k := &followedKind{place: claimPath(), maxAge: maxProofAgeClaims, few: fewClaims,
		restore: c.Checkpoints.restoreClaims, one: make(chan struct{}, 1)}
	k.size = func() int { return len(c.objects.claims) }
	k.list = func(ctx context.Context) (string, func(), error) {
		all, version, err := c.claims().allClaims(ctx)
		known := lists.Index(all, func(n cluster.Claim) string { return n.UID })
		return version, func() { c.objects.claims = known }, err
	}
	k.take = func(e watch.Event) bool {
		if n, ok := e.Object.(*karpv1.NodeClaim); ok && translate.IsOurClass(n.Spec.NodeClassRef) {
			keepNewest(c.objects.claims, e.Type, n.UID, func() cluster.Claim { return translate.Claim(n) })
			if e.Type != watch.Deleted && e.Type != watch.Bookmark {
				c.seen.keepStatus(n)
			}
		}
		return c.seen.claimNews(e)
	}
	return k
}

func keepNewest[T any](in map[string]T, what watch.EventType, uid types.UID, made func() T) {
	switch what {
	case watch.Deleted:
		delete(in, string(uid))
	case watch.Added, watch.Modified:
		in[string(uid)] = made()
	}
}

// isMuch reports whether more is known of the kind than is listed to prove something. The lock is held.
func (k *followedKind) isMuch() bool { return k.version != 0 && k.size() > k.few }

// isDoubted reports whether the kind has been known from a checkpoint for so long that it is listed. The lock is held.
func (k *followedKind) isDoubted() bool {
	return !k.restored.IsZero() && time.Since(k.restored) >= restoredFor
}

// isFollowed reports whether a watch is to be open. The lock is held.
func (c *ClusterCache) isFollowed(k *followedKind) bool {
	return k.version != 0 && k.breaks < maxBreaks && (c.staying || k.size() > k.few)
}

// isProven reports whether everything is known that was stored before the time given, own writes included.
func (c *ClusterCache) isProven(k *followedKind, since time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.isProvenLocked(k, since)
}

func (c *ClusterCache) isProvenLocked(k *followedKind, since time.Time) bool {
	if k.version == 0 || k.isDoubted() {
		return false
	}
	began, ok := c.own.observed(k.place.plural, k.version)
	if ok && began.After(k.proven) {
		k.proven = began
	}
	k.aims = slices.DeleteFunc(k.aims, func(a storeRevision) bool {
		reached := k.version >= a.revision
		if reached && a.began.After(k.proven) {
			k.proven = a.began
		}
		return reached
	})
	return ok && !k.proven.Before(since) && !k.proven.Before(c.invalid)
}

// proveKind has everything known that was stored before the time given, and what this client wrote: by what watches
// told already, by a watch that ends in a bookmark, or by a list.
func (c *ClusterCache) proveKind(ctx context.Context, k *followedKind, since time.Time) error {
	c.Checkpoints.restoreUnknown(ctx, k)
	select {
	case k.one <- struct{}{}:
	default: // somebody waits for a bookmark already, which is to prove this moment too
		_ = c.aimAt(ctx, k, since) // or the proof that comes after finds out why not
		select {
		case k.one <- struct{}{}:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	defer func() { <-k.one }()
	c.mu.Lock()
	doubted := k.isDoubted()
	c.mu.Unlock()
	if !doubted && (c.isProven(k, since) || c.awaitOwnWrites(ctx, k, since) || c.catchUpWith(ctx, k, since)) {
		return nil
	}
	began, err := c.listKind(ctx, k)
	if err != nil || !began.Before(since) || c.catchUpWith(ctx, k, since) {
		return err
	}
	_, err = c.listKind(ctx, k) // a list that went on proves what was stored before its first page, and no more
	return err
}

// awaitOwnWrites waits a moment for the watch to tell what this client wrote, if nothing else lacks.
func (c *ClusterCache) awaitOwnWrites(ctx context.Context, k *followedKind, since time.Time) bool {
	ctx, cancel := context.WithTimeout(ctx, catchUp)
	defer cancel()
	waits := func() bool { return c.isFollowed(k) && !k.proven.Before(since) && !k.proven.Before(c.invalid) }
	proven := false
	c.await(ctx, func() bool {
		proven = c.isProvenLocked(k, since)
		return proven || !waits()
	})
	return proven
}

// catchUpWith reads the store's revision and waits until the watch has got there, again where something happens
// meanwhile that only a later revision proves. It reports false if a list is to be read instead.
func (c *ClusterCache) catchUpWith(ctx context.Context, k *followedKind, since time.Time) bool {
	for range mostAims {
		c.mu.Lock()
		patience := max(proveWithin, k.took)
		c.mu.Unlock()
		if !c.aimAt(ctx, k, since) {
			return false
		}
		limit, cancel := context.WithTimeout(ctx, patience)
		proven, late := false, false
		c.await(limit, func() bool {
			proven = c.isProvenLocked(k, since)
			late = !k.isAimed(since, c.invalid)
			return proven || late || k.version == 0
		})
		cancel()
		if proven || !late {
			return proven
		}
	}
	return false
}

// listKind lists the kind, or goes on with its list, and has it followed from there. Everything is known then that was
// stored before the list began.
func (c *ClusterCache) listKind(ctx context.Context, k *followedKind) (began time.Time, err error) {
	began = time.Now()
	wentOn := false
	if k.unfinished != nil {
		if first, ok := k.unfinished.goesOn(); ok {
			began, wentOn = first, true
		}
	}
	if !wentOn {
		c.own.beginList(k.place.plural)
	}
	version, keep, err := k.list(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		k.version = 0 // what was forgotten of own writes must be listed
		return began, err
	}
	keep()
	k.proven, k.took, k.aims, k.restored = began, time.Since(began), nil, time.Time{}
	// one that cannot be compared is as good as unknown: each look lists
	k.version, _ = strconv.ParseUint(version, 10, 64)
	c.Checkpoints.told++
	k.reopen()
	c.notifyWaiters()
	return began, nil
}

// reopen has another watch opened, from the version that is known. The lock is held.
func (k *followedKind) reopen() {
	if k.restart != nil {
		k.restart()
	}
}

// follow watches the kind, as long as the context goes and whenever it is known.
func (c *ClusterCache) follow(ctx context.Context, k *followedKind) {
	for ctx.Err() == nil {
		if !c.await(ctx, func() bool { return c.isFollowed(k) }) {
			return
		}
		under, stop := context.WithCancel(ctx)
		c.mu.Lock()
		from, seconds := k.version, watchSeconds
		if k.short = from < k.wanted; k.short {
			seconds = proveSeconds
		}
		k.restart = stop
		c.mu.Unlock()
		err := c.watchOnce(under, watched{place: k.place, fields: k.fields, seconds: seconds,
			from: func() string { return strconv.FormatUint(from, 10) },
			news: func(e watch.Event) bool { return c.applyWatchEvent(under, k, e) }})
		wanted := under.Err() != nil // it was to end
		stop()
		if wait := c.endWatch(k, from, err, wanted); wait > 0 {
			waitBeforeRetry(ctx, wait)
		}
	}
}

// endWatch notes the end of a watch that began with a version. It returns how long to wait before another is opened.
func (c *ClusterCache) endWatch(k *followedKind, from uint64, err error, wanted bool) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	k.restart, k.short = nil, false
	if k.version > from {
		k.breaks = 0
	}
	switch {
	case wanted:
		return 0
	case apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || errors.Is(err, changedError{}):
		k.gone = k.version
		c.forgetKind(k)
		return 0
	case err == nil && k.version > from:
		return 0
	}
	if k.breaks++; k.breaks >= maxBreaks {
		c.forgetKind(k)
	}
	return min(firstPause<<k.breaks, longestPause)
}

// forgetKind has the kind listed at the next look, and wakes who waits. The lock is held.
func (c *ClusterCache) forgetKind(k *followedKind) {
	k.version, c.news = 0, true
	c.notifyWaiters()
}

// applyWatchEvent takes what a watch tells. It reports true when that cannot be understood.
func (c *ClusterCache) applyWatchEvent(ctx context.Context, k *followedKind, e watch.Event) (bad bool) {
	o, ok := e.Object.(metav1.Object)
	if !ok {
		return true
	}
	at, err := strconv.ParseUint(o.GetResourceVersion(), 10, 64)
	if err != nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	k.short = k.short && e.Type != watch.Bookmark
	if ctx.Err() != nil || at <= k.version || k.version == 0 {
		return false // a list, or another watch, has it already
	}
	if k.take(e) {
		c.news = true
	}
	k.version = at
	if e.Type != watch.Bookmark {
		c.Checkpoints.told++
	}
	switch {
	case e.Type == watch.Deleted:
		c.own.noteEvent(k.place.plural, o.GetUID(), gone)
	case o.GetDeletionTimestamp() != nil:
		c.own.noteEvent(k.place.plural, o.GetUID(), ending)
	}
	c.notifyWaiters()
	return false
}
