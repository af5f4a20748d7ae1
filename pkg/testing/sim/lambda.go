package sim

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"joiner/pkg/controllers/notices"
)

// Function is a program under test and how it is run: by a schedule, by others that wake it, by events.
type Function struct {
	Name    string
	Every   time.Duration // of its schedule, 0 for none
	Alone   bool          // reserved concurrency of one
	Retries int           // after an error of an invocation
	MaxAge  time.Duration // of an invocation that waits for its turn
	Timeout time.Duration
	Event   string // the kind of event that invokes it, empty for none
	// Run is one invocation. The event is nil for schedules and wakes.
	Run func(ctx context.Context, in Invocation) error
}

// Invocation is what one run of a function gets.
type Invocation struct {
	Ports  *Ports
	Holder string           // its name in leases
	Now    func() time.Time // its clock, which may be wrong by a second or two
	Until  time.Time        // by when it must have ended by itself
	Event  Event            // what invoked it
	Log    *slog.Logger
}

// invocation is one run as the platform sees it. dead is guarded by engine.mu and written by the loop.
type invocation struct {
	id      int
	fn      *Function
	event   Event
	attempt int
	started time.Time
	asked   time.Time
	cancel  context.CancelFunc
	dead    bool
	faulty  bool // something went wrong with it
	err     error
	open    map[*portRequest]bool
	learned []refusedOffer // offers that it was told are sold out
	told    []*machine     // whose status it was told, and must act on
	unseen  bool           // it was shown a class that refresh has not looked at as it is
	woke    bool           // it woke refresh
	leased  time.Time      // when it took the lease of capacity last

	recalled map[string]bool // UIDs of claims of others for which it has asked EC2
}

// String names it in the trace.
func (i *invocation) String() string { return fmt.Sprintf("%s#%d", i.fn.Name, i.id) }

// invokeAsync asks for an asynchronous invocation, which starts when there is room.
func (w *world) invokeAsync(fn *Function, e Event, attempt int, asked time.Time) {
	if w.over {
		return
	}
	if fn.Alone && w.runningInvocations(fn) >= w.plan.together {
		if time.Since(asked) < fn.MaxAge && e.waits {
			w.runAfter(w.drawDuration(500*time.Millisecond, 2*time.Second),
				func() { w.invokeAsync(fn, e, attempt, asked) })
		}
		return
	}
	w.started++
	ctx, cancel := context.WithTimeout(context.Background(), fn.Timeout)
	inv := &invocation{id: w.started, fn: fn, event: e, attempt: attempt, started: time.Now(), asked: asked,
		cancel: cancel,
		open:   map[*portRequest]bool{}, recalled: map[string]bool{}}
	w.alive = append(w.alive, inv)
	skew := w.drawDuration(-w.plan.skew, w.plan.skew)
	in := Invocation{Ports: &Ports{w: w, inv: inv, seen: map[objectKind]int{}}, Holder: inv.String(), Event: e,
		Now:   func() time.Time { return time.Now().Add(skew) },
		Until: inv.started.Add(min(w.plan.stay, fn.Timeout-5*time.Second)).Add(skew),
		Log:   slog.New(&logHandler{w: w, inv: inv})}
	w.addTrace("%s starts %s", inv, e.Kind)
	go func() {
		inv.err = fn.Run(ctx, in)
		w.returnInvocation(inv)
	}()
	w.runAfter(fn.Timeout, func() {
		if w.isAlive(inv) {
			w.killInvocation(inv, "times out")
		}
	})
}

func (w *world) runningInvocations(fn *Function) (n int) {
	for _, i := range w.alive {
		if i.fn == fn {
			n++
		}
	}
	return n
}

func (w *world) isAlive(inv *invocation) bool {
	for _, i := range w.alive {
		if i == inv {
			return true
		}
	}
	return false
}

// returnInvocation tells the loop that the invocation has returned, in order with its calls.
func (w *world) returnInvocation(inv *invocation) {
	w.postRequest(&portRequest{inv: inv, call: "zz end", ending: true})
}

// invocationEnded is the end of an invocation that was not killed. One with an error is tried again.
func (w *world) invocationEnded(inv *invocation) {
	if !w.isAlive(inv) {
		return
	}
	w.buryInvocation(inv)
	outcome := "ends"
	if inv.err != nil {
		outcome = "ends with " + strings.ReplaceAll(inv.err.Error(), "\n", " / ")
		if _, early := errors.AsType[*notices.EarlyError](inv.err); !inv.faulty && !early &&
			time.Since(inv.started) < inv.fn.Timeout {
			w.addViolation("error without a fault", "%s: %v", inv, inv.err)
		}
	}
	w.addTrace("%s %s", inv, outcome)
	w.checkEnded(inv)
	w.checkHandled(inv)
	w.checkTold(inv)
	if inv.err != nil {
		w.retryInvocation(inv)
	}
}

// killInvocation ends the process of an invocation. What it had sent may still arrive.
func (w *world) killInvocation(inv *invocation, why string) {
	if !w.isAlive(inv) {
		return
	}
	w.addTrace("%s %s", inv, why)
	w.mu.Lock()
	inv.dead = true
	w.mu.Unlock()
	w.buryInvocation(inv)
	w.retryInvocation(inv)
}

// buryInvocation forgets an invocation and lets go of its goroutines.
func (w *world) buryInvocation(inv *invocation) {
	for i, a := range w.alive {
		if a == inv {
			w.alive = append(w.alive[:i], w.alive[i+1:]...)
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
func (w *world) retryInvocation(inv *invocation) {
	if inv.attempt >= inv.fn.Retries {
		return
	}
	w.runAfter(time.Duration(inv.attempt+1)*time.Minute, func() {
		if time.Since(inv.asked) < inv.fn.MaxAge {
			w.invokeAsync(inv.fn, inv.event, inv.attempt+1, inv.asked)
		}
	})
}

// scheduleFunction invokes a function every so often, for ever.
func (w *world) scheduleFunction(fn *Function, first time.Duration) {
	w.runAfter(first, func() {
		if !w.drawChance(w.plan.lost) {
			w.invokeAsync(fn, Event{Kind: "schedule"}, 0, time.Now())
		}
		w.scheduleFunction(fn, fn.Every)
	})
}

// NewWaker wakes the function of that name.
func (p *Ports) NewWaker(name string) *Waker { return &Waker{p, name} }

// Waker invokes a function asynchronously.
type Waker struct {
	p    *Ports
	name string
}

// Wake asks for an invocation.
func (k *Waker) Wake(ctx context.Context) error {
	return tryPort(ctx, k.p, "wake "+k.name, "", func() error {
		w := k.p.w
		k.p.inv.woke = k.p.inv.woke || k.name == "refresh"
		if fn := w.functions[k.name]; fn != nil {
			w.runAfter(w.drawDuration(30*time.Millisecond, 500*time.Millisecond), func() {
				w.invokeAsync(fn, Event{Kind: "wake", waits: true}, 0, time.Now())
			})
		}
		return nil
	})
}

// logHandler writes what an invocation logs into the trace.
type logHandler struct {
	w   *world
	inv *invocation
}

// Enabled leaves debugging out.
func (h *logHandler) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelInfo }

// Handle keeps the line for the loop.
func (h *logHandler) Handle(_ context.Context, r slog.Record) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s says: %s", h.inv, strings.ReplaceAll(r.Message, "\n", " / "))
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
		return true
	})
	h.w.mu.Lock()
	defer h.w.mu.Unlock()
	if !h.inv.dead {
		h.w.said = append(h.w.said, b.String())
	}
	return nil
}

// WithAttrs is not used by control.
func (h *logHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup is not used by control.
func (h *logHandler) WithGroup(string) slog.Handler { return h }
