package kube

import (
	"maps"
	"strconv"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// pendingWrites is what this client wrote since a Mirror listed everything: what the Mirror must have seen before it
// may speak. The zero value is ready and remembers nothing.
type pendingWrites struct {
	mu      sync.Mutex
	on      bool
	latest  map[string]writtenVersion   // by plural: the newest that it wrote
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

// expectedEvent is what a watch must tell of an object.
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
		c.own.expectEvent(o.GetUID(), gone)
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
	c.own.expectEvent(uid, ending)
}

func (o *pendingWrites) noteVersion(p apiPath, version string, began time.Time) {
	n, err := strconv.ParseUint(version, 10, 64)
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case !o.on:
		return
	case err != nil:
		o.unclear = true
		return
	}
	if n > o.latest[p.plural].version {
		o.latest[p.plural] = writtenVersion{n, began}
	}
}

func (o *pendingWrites) expectEvent(uid types.UID, what expectedEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return
	}
	if is, ok := o.seen[uid]; !ok || is < what {
		o.leaving[uid] = what
	}
}

// noteEvent notes what a watch told of an object.
func (o *pendingWrites) noteEvent(uid types.UID, what expectedEvent) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return
	}
	o.seen[uid] = max(o.seen[uid], what)
	if want, ok := o.leaving[uid]; ok && what >= want {
		delete(o.leaving, uid)
	}
}

// beginList is called before everything is listed, which shows whatever was written before.
func (o *pendingWrites) beginList() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.latest, o.leaving, o.seen, o.unclear = true, map[string]writtenVersion{}, map[types.UID]expectedEvent{},
		map[types.UID]expectedEvent{}, false
}

// endList is called when nobody asks any more.
func (o *pendingWrites) endList() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.latest, o.leaving, o.seen, o.unclear = false, nil, nil, nil, false
}

// allObserved reports whether what is known up to these versions holds all that was written, and what was written last
// of each kind.
func (o *pendingWrites) allObserved(at map[string]uint64) (last map[string]writtenVersion, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for plural, w := range o.latest {
		if have, followed := at[plural]; followed && have < w.version {
			return nil, false
		}
	}
	return maps.Clone(o.latest), !o.unclear && len(o.leaving) == 0
}
