package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"joiner/pkg/model/instancetypes"
)

// Ports is the world as one invocation sees it, through the ports of control. A call takes time on its way there and on
// its way back, and may fail or kill the invocation at either end.
type Ports struct {
	w    *world
	inv  *invocation
	seen map[objectKind]int // the last change of each kind that a read has shown
}

// portRequest is one call on its way.
type portRequest struct {
	inv     *invocation
	call    string
	key     string // what it is about: sorts and tells
	deed    func() (any, error)
	reply   chan portAnswer
	waiting bool               // a watch: it is answered by a change
	ending  bool               // no call: the invocation has returned
	left    bool               // nobody waits for the answer any more; guarded by engine.mu
	seen    map[objectKind]int // of a watch: what its invocation had read
}

type portAnswer struct {
	value any
	err   error
}

// deadError is what calls of a process return that is no more.
type deadError struct{}

func (deadError) Error() string { return "the process is dead" }

// FaultError is what a call returns that the simulation lets fail.
type FaultError struct{ Call string }

// Error names the call.
func (e *FaultError) Error() string { return e.Call + ": the connection broke" }

// ConflictError says that an object was changed or is gone; nothing was written.
type ConflictError struct{ What string }

// Error names the object.
func (e *ConflictError) Error() string { return e.What + " was changed meanwhile" }

// Conflict reports true.
func (e *ConflictError) Conflict() bool { return true }

// NotFoundError says that an object does not exist.
type NotFoundError struct{ What string }

// Error names the object.
func (e *NotFoundError) Error() string { return e.What + " does not exist" }

// NotFound reports true.
func (e *NotFoundError) NotFound() bool { return true }

// callPort makes one call: the deed is done by the loop, at a time and with an outcome that the loop draws.
func callPort[T any](ctx context.Context, p *Ports, call, key string, deed func() (T, error)) (T, error) {
	r := &portRequest{inv: p.inv, call: call, key: key, reply: make(chan portAnswer, 1)}
	if deed == nil {
		r.waiting, r.seen = true, maps.Clone(p.seen)
	} else {
		r.deed = func() (any, error) { return deed() }
	}
	var none T
	if err := ctx.Err(); err != nil {
		return none, fmt.Errorf("%s: %w", call, err)
	}
	if !p.w.postRequest(r) {
		return none, deadError{}
	}
	select {
	case a := <-r.reply:
		if a.err != nil {
			return none, a.err
		}
		return a.value.(T), nil
	case <-ctx.Done():
		p.w.abandonRequest(r)
		return none, fmt.Errorf("%s: %w", call, ctx.Err())
	}
}

// tryPort is do for a call without a result.
func tryPort(ctx context.Context, p *Ports, call, key string, deed func() error) error {
	_, err := callPort(ctx, p, call, key, func() (struct{}, error) { return struct{}{}, deed() })
	return err
}

// admitRequest decides when a call is carried out and answered, and what goes wrong with it.
func (w *world) admitRequest(r *portRequest) {
	if r.ending {
		w.invocationEnded(r.inv)
		return
	}
	if r.inv.dead {
		r.reply <- portAnswer{err: deadError{}}
		return
	}
	r.inv.open[r] = true
	f := w.faults.nextFault(w, r)
	w.checkIssued(r)
	there, back := w.travelTime(r.call)
	if r.waiting {
		if f != fine {
			w.runAfter(20*there, func() { w.failRequest(r, f, back) })
			return
		}
		w.watchers = append(w.watchers, watchWaiter{r, w.drawDuration(100*time.Millisecond, w.plan.watchLag)})
		w.answerWatchers()
		return
	}
	w.runAfter(there, func() { w.carryOut(r, f, back) })
}

// carryOut does the deed and sends the reply on its way.
func (w *world) carryOut(r *portRequest, f callFault, back time.Duration) {
	if !r.inv.open[r] && !w.drawChance(0.5) {
		return // the process died before the request had left it
	}
	if f == dieBefore || f == failBefore {
		w.addTrace("%s %s %s: %s", r.inv, r.call, r.key, f)
		w.failRequest(r, f, back)
		return
	}
	value, err := r.deed()
	switch {
	case err != nil:
		w.addTrace("%s %s %s: %v", r.inv, r.call, r.key, err)
	case !isReadOnly(r.call):
		w.addTrace("%s %s %s", r.inv, r.call, r.key)
	}
	if f == dieAfter || f == failAfter {
		w.addTrace("%s %s %s: %s", r.inv, r.call, r.key, f)
		w.failRequest(r, f, back)
		return
	}
	w.runAfter(back, func() { w.answerRequest(r, portAnswer{value, err}) })
}

func (w *world) failRequest(r *portRequest, f callFault, back time.Duration) {
	if f == dieBefore || f == dieAfter {
		w.killInvocation(r.inv, f.String())
		return
	}
	r.inv.faulty = true
	w.runAfter(back, func() { w.answerRequest(r, portAnswer{err: &FaultError{r.call}}) })
}

func (w *world) answerRequest(r *portRequest, a portAnswer) {
	if r.inv.open[r] {
		delete(r.inv.open, r)
		w.noteReply(r, a)
		r.reply <- a
	}
}

// noteReply remembers what an invocation was told.
func (w *world) noteReply(r *portRequest, a portAnswer) {
	if f, ok := a.value.(fleetAnswer); ok && a.err == nil {
		w.learnUnavailable(r.inv, f.marks)
		if no, ok := errors.AsType[*instancetypes.NoCapacityError](f.err); ok {
			w.learnUnavailable(r.inv, no.Marks)
		}
	}
	if no, ok := errors.AsType[*instancetypes.NoCapacityError](a.err); ok {
		w.learnUnavailable(r.inv, no.Marks)
	}
}

// travelTime is how long a call needs there and back.
func (w *world) travelTime(call string) (there, back time.Duration) {
	least, most := 2*time.Millisecond, 40*time.Millisecond
	switch call {
	case "launch", "launch batch":
		least, most = 300*time.Millisecond, 2*time.Second
	case "terminate", "list instances", "describe instance status", "tag instance", "sweep launch templates",
		"look for the instance":
		least, most = 40*time.Millisecond, 400*time.Millisecond
	}
	if w.drawChance(w.plan.slow) {
		most *= 10
	}
	return w.drawDuration(least, most), w.drawDuration(least, most)
}

// isReadOnly calls change nothing and are left out of the trace unless they fail.
func isReadOnly(call string) bool {
	switch call {
	case "list homeless pods", "list claims", "list claims of instances", "list instances", "describe instance status",
		"read pods", "read nodes", "read claims", "read the rest", "read volumes", "read volume limits", "get class",
		"read catalog", "read sold-out marks", "get node", "wait", "keep watch lease", "leave watch lease", "ask who watches",
		"sweep launch templates":
		return true
	}
	return false
}
