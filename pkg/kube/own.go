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

// own is what this client wrote since a Mirror listed everything: what the Mirror must have seen before it may speak. The zero value is
// ready and remembers nothing.
type own struct {
	mu      sync.Mutex
	on      bool
	latest  map[string]written  // by plural: the newest that it wrote
	leaving map[types.UID]leave // what it evicted or removed; no answer says in which version
	seen    map[types.UID]leave // what watches told of objects that go: they may be faster than the answer to the write
	unclear bool                // it wrote something, and cannot tell what must be seen of it
}

// written is a version, and when at the latest the write of it began: whoever knows that version knows all that was stored before.
type written struct {
	version uint64
	began   time.Time
}

// leave is what a watch must tell of an object.
type leave int

const (
	ending leave = iota // it is being deleted
	gone
)

// wrote remembers an object as the API server answered to a write that began then.
func (c *Client) wrote(p place, o metav1.Object, began time.Time) {
	c.seen.wrote(o.GetResourceVersion())
	if o.GetDeletionTimestamp() != nil && len(o.GetFinalizers()) == 0 && p != pods() { // that took its last finalizer off
		c.own.expect(o.GetUID(), gone)
		return
	}
	c.own.note(p, o.GetResourceVersion(), began)
}

// removed remembers the answer to a deletion that began then: the object if it stays for a while.
func (c *Client) removed(p place, left runtime.Object, uid types.UID, began time.Time) {
	if o, ok := left.(metav1.Object); ok && o.GetResourceVersion() != "" && o.GetDeletionTimestamp() != nil {
		c.own.note(p, o.GetResourceVersion(), began)
		return
	}
	c.own.expect(uid, ending)
}

func (o *own) note(p place, version string, began time.Time) {
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
		o.latest[p.plural] = written{n, began}
	}
}

func (o *own) expect(uid types.UID, what leave) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on {
		return
	}
	if is, ok := o.seen[uid]; !ok || is < what {
		o.leaving[uid] = what
	}
}

// met notes what a watch told of an object.
func (o *own) met(uid types.UID, what leave) {
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

// begin is called before everything is listed, which shows whatever was written before.
func (o *own) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.latest, o.leaving, o.seen, o.unclear = true, map[string]written{}, map[types.UID]leave{}, map[types.UID]leave{}, false
}

// end is called when nobody asks any more.
func (o *own) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on, o.latest, o.leaving, o.seen, o.unclear = false, nil, nil, nil, false
}

// within reports whether what is known up to these versions holds all that was written, and what was written last of each kind.
func (o *own) within(at map[string]uint64) (last map[string]written, ok bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for plural, w := range o.latest {
		if have, followed := at[plural]; followed && have < w.version {
			return nil, false
		}
	}
	return maps.Clone(o.latest), !o.unclear && len(o.leaving) == 0
}
