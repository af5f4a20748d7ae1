package kube

import (
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// pendingWrites holds what this client wrote since a ClusterCache listed a kind: what the cache must have seen of it
// before it may speak. The zero value is ready and remembers nothing.
type pendingWrites struct {
	mu    sync.Mutex
	kinds map[string]*kindWrites // by plural, those that were listed
	other time.Time              // when an object of another kind was written last
}

// noteOther notes that an object was written, or that this was tried, until now.
func (w *pendingWrites) noteOther(p apiPath) {
	switch p {
	case podPath(), nodePath(), claimPath(), eventPath(), leasePath(), configMaps():
		return // of which no configuration consists
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.other = time.Now()
}

func (w *pendingWrites) lastOther() time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.other
}

// kindWrites holds what was written of one kind.
type kindWrites struct {
	latest  writtenVersion              // the newest that it wrote
	leaving map[types.UID]expectedEvent // what it evicted or removed; no answer says in which version
	// what watches told of objects that go: they may be faster than the answer to the write
	seen    map[types.UID]expectedEvent
	unclear bool // it wrote something, and cannot tell what must be seen of it
}

// writtenVersion is a version, and when at the latest the write of it began: whoever knows that version knows all that
// was stored before.
type writtenVersion struct {
	version uint64
	began   time.Time
}

// expectedEvent is the event that a watch must tell of an object.
type expectedEvent int

const (
	ending expectedEvent = iota // it is being deleted
	gone
)

// noteWritten remembers an object as the API server answered to a write that began then.
func (c *connection) noteWritten(p apiPath, o metav1.Object, began time.Time) {
	c.seen.keepWritten(o.GetResourceVersion())
	// that took its last finalizer off
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && p != podPath() {
		c.own.expectEvent(p, o.GetUID(), gone)
		return
	}
	c.own.noteVersion(p, o.GetResourceVersion(), began)
}

// noteRemoved remembers the answer to a deletion that began then: the object if it stays for a while.
func (c *connection) noteRemoved(p apiPath, left runtime.Object, uid types.UID, began time.Time) {
	if o, ok := left.(metav1.Object); ok && o.GetResourceVersion() != "" && o.GetDeletionTimestamp() != nil {
		c.own.noteVersion(p, o.GetResourceVersion(), began)
		return
	}
	c.own.expectEvent(p, uid, ending)
}

func (w *pendingWrites) noteVersion(p apiPath, version string, began time.Time) {
	n, err := strconv.ParseUint(version, 10, 64)
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[p.plural]
	switch {
	case k == nil:
	case err != nil:
		k.unclear = true
	case n > k.latest.version:
		k.latest = writtenVersion{n, began}
	}
}

func (w *pendingWrites) expectEvent(p apiPath, uid types.UID, what expectedEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[p.plural]
	if k == nil {
		return
	}
	if is, ok := k.seen[uid]; !ok || is < what {
		k.leaving[uid] = what
	}
}

// noteEvent notes what a watch told of an object.
func (w *pendingWrites) noteEvent(plural string, uid types.UID, what expectedEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[plural]
	if k == nil {
		return
	}
	k.seen[uid] = max(k.seen[uid], what)
	if want, ok := k.leaving[uid]; ok && what >= want {
		delete(k.leaving, uid)
	}
}

// beginList is called before a kind is listed, which shows whatever was written of it before.
func (w *pendingWrites) beginList(plural string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.kinds == nil {
		w.kinds = map[string]*kindWrites{}
	}
	w.kinds[plural] = &kindWrites{leaving: map[types.UID]expectedEvent{}, seen: map[types.UID]expectedEvent{}}
}

// forgetSeen is called when no write is under way whose answer a watch could have overtaken.
func (w *pendingWrites) forgetSeen() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, k := range w.kinds {
		clear(k.seen)
	}
}

// observed reports whether what is known of a kind up to the version holds all that was written, and when at the latest
// the newest write began.
func (w *pendingWrites) observed(plural string, version uint64) (began time.Time, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	k := w.kinds[plural]
	if k == nil {
		return time.Time{}, true
	}
	return k.latest.began, version >= k.latest.version && !k.unclear && len(k.leaving) == 0
}
