package sim

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/cluster"
)

// lambda invokes the functions: by their schedules, by events, and when another wakes them.
type lambda struct {
	*engine
	functions map[string]*Function
	order     []*Function // as given
	alive     []*invocation
	caches    *processCaches
	started   int
	over      bool                     // nothing is invoked any more
	newPorts  func(*invocation) *Ports // what an invocation reaches the world by
	ceiling   func() cluster.Ceiling   // of an invocation that begins now
}

// Function is a program under test and how it is run: by a schedule, by others that wake it, by events.
type Function struct {
	Name  string
	Every time.Duration // of its schedule, 0 for none
	Alone bool          // reserved concurrency of one
	// Reserved is the number of invocations of one that is not alone that run at once, 0 for any number.
	Reserved int
	Retries  int           // after an error of an invocation
	MaxAge   time.Duration // of an invocation that waits for its turn
	Timeout  time.Duration
	Event    string // the kind of event that invokes it, empty for none
	// Run is one invocation. The event is nil for schedules and wakes.
	Run func(ctx context.Context, in Invocation) error
}

// Invocation holds what one run of a function gets.
type Invocation struct {
	Ports  *Ports
	Holder string           // its name in leases
	Now    func() time.Time // its clock, which may be wrong by a second or two
	Until  time.Time        // by when it must have ended by itself
	Event  Event            // what invoked it
	// of the whole cluster, as the function was deployed
	Ceiling cluster.Ceiling
	Log     *slog.Logger
}

// invocation is one run as the platform sees it. dead is guarded by engine.mu and written by the loop.
type invocation struct {
	id      int
	fn      *Function
	event   Event
	chain   []string // of functions, each of which woke the next; this one is the last
	attempt int
	started time.Time
	asked   time.Time
	cancel  context.CancelFunc
	dead    bool
	faulty  bool // something went wrong with it
	denied  bool // it may not write an object
	err     error
	open    map[*portRequest]bool
	learned []refusedOffering // offerings that it was told are unavailable
	told    []*machine        // whose status it was told, and must act on
	unseen  bool              // it was shown a class that refresh has not looked at as it is
	woke    bool              // it woke refresh
	refused time.Time         // when EC2 refused it a start first
	leased  time.Time         // when it took the lease of capacity last, and not when it kept it for longer
	cache   *processCache     // of the process it runs in
	looked  time.Time         // when it looked at all of the cluster last
	misled  bool              // its cache showed it, against the contract, what may be older than itself

	longestPass time.Duration   // of those that took the lease of capacity
	recalled    map[string]bool // UIDs of claims of others for which it has asked EC2 for what is unavailable as well

	podMemory [][]cluster.Pod // of its snapshots
}

// String names it in the trace.
func (i *invocation) String() string { return fmt.Sprintf("%s#%d", i.fn.Name, i.id) }

// invokeAsync asks for an asynchronous invocation, which starts when there is room.
func (l *lambda) invokeAsync(fn *Function, e Event, attempt int, asked time.Time) {
	if l.over {
		return
	}
	if l.isThrottled(fn) {
		if time.Since(asked) < fn.MaxAge && e.waits {
			l.runAfter(l.drawDuration(500*time.Millisecond, 2*time.Second),
				func() { l.invokeAsync(fn, e, attempt, asked) })
		}
		return
	}
	l.started++
	ctx, cancel := context.WithTimeout(context.Background(), fn.Timeout)
	inv := &invocation{id: l.started, fn: fn, event: e, chain: append(slices.Clip(e.chain), fn.Name),
		attempt: attempt, started: time.Now(), asked: asked, cancel: cancel, open: map[*portRequest]bool{},
		recalled: map[string]bool{}, cache: l.caches.take(fn)}
	l.alive = append(l.alive, inv)
	skew := l.drawDuration(-l.plan.skew, l.plan.skew)
	in := Invocation{Ports: l.newPorts(inv), Holder: inv.String(), Event: e, Ceiling: l.ceiling(),
		Now:   func() time.Time { return time.Now().Add(skew) },
		Until: inv.started.Add(min(l.plan.stay, fn.Timeout-5*time.Second)).Add(skew),
		Log:   slog.New(&logHandler{l.engine, inv})}
	l.addTrace("%s starts %s", inv, e.Kind)
	l.observe(invocationStarted{inv})
	go func() {
		inv.err = fn.Run(ctx, in)
		l.returnInvocation(inv)
	}()
	l.runAfter(fn.Timeout, func() {
		if l.isAlive(inv) {
			l.killInvocation(inv, "times out")
		}
	})
}

// isThrottled reports whether as many invocations of the function run as may.
func (l *lambda) isThrottled(fn *Function) bool {
	switch {
	case fn.Alone:
		return l.runningInvocations(fn) >= l.plan.together
	case fn.Reserved > 0:
		return l.runningInvocations(fn) >= fn.Reserved
	}
	return false
}

func (l *lambda) runningInvocations(fn *Function) (n int) {
	for _, i := range l.alive {
		if i.fn == fn {
			n++
		}
	}
	return n
}

func (l *lambda) isAlive(inv *invocation) bool {
	for _, i := range l.alive {
		if i == inv {
			return true
		}
	}
	return false
}

// returnInvocation tells the loop that the invocation has returned, in order with its calls.
func (l *lambda) returnInvocation(inv *invocation) {
	l.postRequest(&portRequest{inv: inv, call: "zz end", ending: true})
}

// invocationEnded is the end of an invocation that was not killed. One with an error is tried again.
func (l *lambda) invocationEnded(inv *invocation) {
	if !l.isAlive(inv) {
		return
	}
	l.buryInvocation(inv)
	l.caches.keep(inv)
	outcome := "ends"
	if inv.err != nil {
		outcome = "ends with " + strings.ReplaceAll(inv.err.Error(), "\n", " / ")
	}
	l.addTrace("%s %s", inv, outcome)
	l.observe(invocationReturned{inv})
	if inv.err != nil {
		l.retryInvocation(inv)
	}
}

// killInvocation ends the process of an invocation. What it had sent may still arrive.
func (l *lambda) killInvocation(inv *invocation, why string) {
	if !l.isAlive(inv) {
		return
	}
	l.addTrace("%s %s", inv, why)
	l.mu.Lock()
	inv.dead = true
	l.mu.Unlock()
	l.buryInvocation(inv)
	l.retryInvocation(inv)
}

// buryInvocation forgets an invocation and lets go of its goroutines.
func (l *lambda) buryInvocation(inv *invocation) {
	for i, a := range l.alive {
		if a == inv {
			l.alive = append(l.alive[:i], l.alive[i+1:]...)
			break
		}
	}
	for r := range inv.open {
		delete(inv.open, r)
		r.reply <- portAnswer{err: deadError{}}
	}
	inv.cancel()
}

// retryInvocation retries an invocation that failed, as asynchronous invocations are: after one minute, and then after
// two.
func (l *lambda) retryInvocation(inv *invocation) {
	if inv.attempt >= inv.fn.Retries {
		return
	}
	l.runAfter(time.Duration(inv.attempt+1)*time.Minute, func() {
		if time.Since(inv.asked) < inv.fn.MaxAge {
			l.invokeAsync(inv.fn, inv.event, inv.attempt+1, inv.asked)
		}
	})
}

// scheduleFunction invokes a function every so often, for ever.
func (l *lambda) scheduleFunction(fn *Function, first time.Duration) {
	l.runAfter(first, func() {
		if !l.drawChance(l.plan.lost) {
			l.invokeAsync(fn, Event{Kind: "schedule"}, 0, time.Now())
		}
		l.scheduleFunction(fn, fn.Every)
	})
}
