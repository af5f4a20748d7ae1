package sim

import (
	"time"

	"joiner.sh/pkg/testing/requestlimits"
)

// network carries the calls of invocations: each takes time there and back, and may fail or kill at either end.
type network struct {
	*engine
	faults  faultSource
	api     *apiServer
	lambda  *lambda
	account *requestlimits.Account
	refused map[string]int // calls by AWS for their rate, by action
	denied  *denial        // nil in worlds in which everything may be written and read
}

// portRequest is one call on its way.
type portRequest struct {
	inv     *invocation
	call    string
	key     string // what it is about: sorts and tells
	effect  func() (any, error)
	reply   chan portAnswer
	waiting bool               // a watch: it is answered by a change
	ending  bool               // no call: the invocation has returned
	left    bool               // nobody waits for the answer any more; guarded by engine.mu
	seen    map[objectKind]int // of a watch: what its invocation had read
	refused int                // how often AWS refused it for its rate
}

type portAnswer struct {
	value any
	err   error
}

// admitRequest decides when a call is carried out and answered, and what goes wrong with it.
func (n *network) admitRequest(r *portRequest) {
	if r.ending {
		n.lambda.invocationEnded(r.inv)
		return
	}
	if r.inv.dead {
		r.reply <- portAnswer{err: deadError{}}
		return
	}
	r.inv.open[r] = true
	f := n.faults.nextFault(r)
	n.observe(callMade{r})
	there, back := n.travelTime(r.call)
	if r.waiting {
		if f != fine {
			n.runAfter(20*there, func() { n.failRequest(r, f, back) })
			return
		}
		n.api.addWatcher(r, n.drawDuration(100*time.Millisecond, n.plan.watchLag))
		return
	}
	n.runAfter(there, func() { n.carryOut(r, f, back) })
}

// carryOut does the deed and sends the reply on its way.
func (n *network) carryOut(r *portRequest, f callFault, back time.Duration) {
	if !r.inv.open[r] && !n.drawChance(0.5) {
		return // the process died before the request had left it
	}
	if f == dieBefore || f == failBefore {
		n.addTrace("%s %s %s: %s", r.inv, r.call, r.key, f)
		n.failRequest(r, f, back)
		return
	}
	if n.denies(r) {
		n.refuseDenied(r, back)
		return
	}
	if n.refuse(r, f, back) {
		return
	}
	value, err := r.effect()
	n.noteCreated(r, value)
	switch {
	case err != nil:
		n.addTrace("%s %s %s: %v", r.inv, r.call, r.key, err)
	case !isReadOnly(r.call):
		n.addTrace("%s %s %s", r.inv, r.call, r.key)
	}
	if f == dieAfter || f == failAfter {
		n.addTrace("%s %s %s: %s", r.inv, r.call, r.key, f)
		n.failRequest(r, f, back)
		return
	}
	n.runAfter(back, func() { n.answerRequest(r, portAnswer{value, err}) })
}

func (n *network) failRequest(r *portRequest, f callFault, back time.Duration) {
	if f == dieBefore || f == dieAfter {
		n.lambda.killInvocation(r.inv, f.String())
		return
	}
	r.inv.faulty = true
	n.runAfter(back, func() { n.answerRequest(r, portAnswer{err: &FaultError{r.call}}) })
}

func (n *network) answerRequest(r *portRequest, a portAnswer) {
	if r.inv.open[r] {
		delete(r.inv.open, r)
		if !n.isAbandoned(r) { // else it tells nobody anything
			n.observe(callAnswered{r.inv, a})
		}
		if a.err == nil && !isReadOnly(r.call) {
			r.inv.cache.noteWrite(r.call)
		}
		r.reply <- a
	}
}

// travelTime returns the time that a call needs there and back.
func (n *network) travelTime(call string) (there, back time.Duration) {
	least, most := 2*time.Millisecond, 40*time.Millisecond
	switch call {
	case "launch", "launch batch", "start instance", "stop":
		least, most = 300*time.Millisecond, 2*time.Second
	case "terminate", "list instances", "describe instance status", "tag instance", "sweep launch templates",
		"look for the instance":
		least, most = 40*time.Millisecond, 400*time.Millisecond
	}
	if n.drawChance(n.plan.slow) {
		most *= 10
	}
	return n.drawDuration(least, most), n.drawDuration(least, most)
}

// isReadOnly calls change nothing and are left out of the trace unless they fail.
func isReadOnly(call string) bool {
	switch call {
	case "list pending pods", "list claims", "read cache", "get claim", "list pods of node", "list claims of instances", "list instances", "describe instance status",
		"read pods", "read nodes", "read claims", "read the rest", "read volumes", "read volume limits", "get class",
		"read catalog", "read unavailable offerings", "get node", "wait", "keep watch lease", "leave watch lease",
		"ask who watches",
		"sweep launch templates", "put metrics":
		return true
	}
	return false
}
