package controllers

import (
	"context"
	"log/slog"
	"time"
)

// A watch lease is short, because whoever sees it wakes nobody: it outlives a process that died by no more than this.
const (
	watchTTL   = 6 * time.Second
	watchRenew = watchTTL / 3 // one that fails leaves time for another; handlers of notices wait for it
	watchProof = watchRenew + 250*time.Millisecond
	watchEnd   = 3 * time.Second // before the end of an invocation, from when on it is woken again
)

// WatchLeaseName names the lease that an invocation of the function holds while it watches the cluster.
func WatchLeaseName(function string) string { return "joiner-watch-" + function }

// WakeUnlessWatching wakes a function unless one of its invocations watches the cluster: that one sees what was written
// before it was asked for. A function that may run once at a time would only queue what comes meanwhile.
type WakeUnlessWatching struct {
	Waker
	Of       LeaseHolders
	Function string
	Log      *slog.Logger
}

// Wake runs the function soon, or leaves it to the invocation that watches. When that cannot be found out the function
// is woken.
func (c WakeUnlessWatching) Wake(ctx context.Context) error {
	_, err := c.WakeAndConfirm(ctx)
	return err
}

// IsWatched reports whether Wake would leave it to an invocation that watches. It changes nothing.
func (c WakeUnlessWatching) IsWatched(ctx context.Context) bool { return c.watchSign(ctx) != "" }

// WakeAndConfirm does what Wake does. When it was left to an invocation that watches, confirm waits until that one has
// shown that it still lived after it was asked for, and else, after seven seconds at most, runs the function all the
// same: the lease of one that died lasts on. It is nil when there is nothing to confirm.
func (c WakeUnlessWatching) WakeAndConfirm(ctx context.Context) (confirm func(context.Context) error, err error) {
	sign := c.watchSign(ctx)
	if sign == "" {
		return nil, c.Waker.Wake(ctx)
	}
	return func(ctx context.Context) error {
		for waited := watchProof; waited < watchTTL+watchProof; waited += watchProof {
			if err := WaitFor(ctx, watchProof); err != nil {
				return err
			}
			now := c.watchSign(ctx)
			if now != "" && now != sign {
				return nil
			}
			if now == "" {
				break // it died, or gave the lease back for its last look; nobody can tell which
			}
		}
		c.Log.Info("watcher did not confirm, invoking function", "function", c.Function)
		return c.Waker.Wake(ctx)
	}, nil
}

// watchSign is empty when it cannot be found out.
func (c WakeUnlessWatching) watchSign(ctx context.Context) string {
	sign, err := c.Of.LeaseSign(ctx, WatchLeaseName(c.Function))
	if err != nil {
		c.Log.Warn("cannot read watch lease", "function", c.Function, "error", err)
		return ""
	}
	return sign
}

// Watcher says to others that an invocation watches. After it has ended the invocation must look once more: whoever
// saw the lease wrote before, and woke nobody. The zero value of lease says nothing to anybody.
type Watcher struct {
	Lease      WatchLease
	Name       string
	Holder     string
	Log        *slog.Logger
	Permission Permission // to write the lease

	end    func(context.Context) // nil while it is not kept
	others bool                  // another one seemed to watch when this one was idle
}

// keepLease takes the lease or goes on with it. One that cannot be kept costs others a wake-up.
func (w *Watcher) keepLease(ctx context.Context) {
	if w.end != nil || w.Lease == nil {
		return
	}
	if may, err := MayWrite(BeginPass(ctx, w.Permission)); err != nil || !may {
		return
	}
	release, ok, err := w.Lease.Acquire(ctx, w.Name, w.Holder, watchTTL)
	if err != nil {
		w.Log.Warn("cannot acquire watch lease", "error", err)
	}
	if err != nil || !ok {
		return
	}
	under, stop := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		w.renewLease(under)
	}()
	w.end = func(ctx context.Context) {
		stop()
		<-renewed // or it would take the lease back after its release
		if err := release(context.WithoutCancel(ctx)); err != nil {
			w.Log.Warn("cannot release watch lease", "error", err)
		}
	}
}

// BeginWatch keeps the lease from now on, if the invocation has work and time left: what a pass does may take seconds,
// and nobody need be woken meanwhile.
func (w *Watcher) BeginWatch(ctx context.Context, left time.Duration) {
	if left > watchEnd {
		w.keepLease(ctx)
	}
}

// ReleaseLease gives the lease back and reports whether there was one.
func (w *Watcher) ReleaseLease(ctx context.Context) bool {
	if w.end == nil {
		return false
	}
	w.end(ctx)
	w.end = nil
	return true
}

func (w *Watcher) renewLease(ctx context.Context) {
	tick := time.NewTicker(watchRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if may, err := MayWrite(BeginPass(ctx, w.Permission)); err != nil || !may {
			continue
		}
		// A renewal that fails is tried again; when the lease runs out others wake us, which does no harm.
		if _, _, err := w.Lease.Acquire(ctx, w.Name, w.Holder, watchTTL); err != nil && ctx.Err() == nil {
			w.Log.Warn("cannot renew watch lease", "error", err)
		}
	}
}

// TimeToWatch returns the time that is left for watching, when the next passes may take as long as the last one. A long
// one that the end of the invocation cuts off has done little, and keeps the next invocation waiting for its lease. A
// short one fits after the end of the watch anyway.
func TimeToWatch(left, took time.Duration) time.Duration {
	if took > watchEnd {
		return left - took
	}
	return left
}

// ContinueWatch keeps the lease or gives it back after a pass, and reports whether there is to be another pass. Left is
// the time until the end of watching; the longest pass of the invocation says how long the next one may take. After it
// had the lease there is one more, since somebody may have relied on it, unless that one would be cut off: then the
// next tick of the schedule looks.
func (w *Watcher) ContinueWatch(ctx context.Context, busy bool, left, longest time.Duration) bool {
	spare := TimeToWatch(left, longest)
	if busy && spare > watchEnd {
		w.keepLease(ctx)
		return true
	}
	if w.ReleaseLease(ctx) {
		if fitsLastPass(left, longest) {
			return true
		}
		w.Log.Warn("no last pass: it would take longer than what is left", "left", left.String(), "takes", longest.String())
		return false
	}
	return (busy || w.inheritsWatch(ctx)) && spare > 0
}

// mayOverrun is the time that a pass may take after the end of watching, before the invocation has to end.
const mayOverrun = 3 * time.Second

// fitsLastPass reports whether a pass that takes as long as the longest before ends in time.
func fitsLastPass(left, longest time.Duration) bool { return longest < left+mayOverrun }

// inheritsWatch reports whether an idle invocation has to look again because another one, which died, still seems to
// watch: what was left to that one is for this one, and the last look comes after it does not seem so any more.
func (w *Watcher) inheritsWatch(ctx context.Context) bool {
	if w.Lease == nil {
		return false
	}
	before := w.others
	sign, err := w.Lease.LeaseSign(ctx, w.Name)
	if w.others = sign != ""; err != nil {
		w.Log.Warn("cannot read watch lease", "error", err)
	}
	return w.others || before
}
