package controllers

import (
	"context"
	"log/slog"
	"time"
)

// A vigil's lease is short, because whoever sees it wakes nobody: it outlives a process that died by no more than this.
const (
	vigilTTL   = 6 * time.Second
	vigilRenew = time.Second // handlers of notices wait for it, and of those there may be hundreds at once
	vigilProof = vigilRenew + 250*time.Millisecond
	vigilEnd   = 3 * time.Second // before the end of an invocation, from when on it is woken again
)

// VigilOf names the lease that an invocation of the function holds while it watches the cluster.
func VigilOf(function string) string { return "joiner-watch-" + function }

// LeaseHolders tells who holds a lease. It may be repeated.
type LeaseHolders interface {
	// LeaseSign is a sign of life of who holds the named lease: empty when nobody does, and other words after each
	// renewal.
	LeaseSign(ctx context.Context, name string) (string, error)
}

// WatchLease is how an invocation tells others that it watches, and finds out whether one before it seems to. All calls
// may be repeated.
type WatchLease interface {
	Lease
	LeaseHolders
}

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
		for waited := vigilProof; waited < vigilTTL+vigilProof; waited += vigilProof {
			if err := waitFor(ctx, vigilProof); err != nil {
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
	sign, err := c.Of.LeaseSign(ctx, VigilOf(c.Function))
	if err != nil {
		c.Log.Warn("cannot read watch lease", "function", c.Function, "error", err)
		return ""
	}
	return sign
}

// watchLease says to others that an invocation watches. After it has ended the invocation must look once more: whoever
// saw the vigil wrote before, and woke nobody. The zero value of lease says nothing to anybody.
type watchLease struct {
	lease  WatchLease
	name   string
	holder string
	log    *slog.Logger
	may    Permission // to write the lease

	end    func(context.Context) // nil while it is not kept
	others bool                  // another one seemed to watch when this one was idle
}

// keepLease begins the vigil or goes on with it. One that cannot be kept costs others a wake-up.
func (v *watchLease) keepLease(ctx context.Context) {
	if v.end != nil || v.lease == nil {
		return
	}
	if may, err := mayWrite(beginPass(ctx, v.may)); err != nil || !may {
		return
	}
	release, ok, err := v.lease.Acquire(ctx, v.name, v.holder, vigilTTL)
	if err != nil {
		v.log.Warn("cannot acquire watch lease", "error", err)
	}
	if err != nil || !ok {
		return
	}
	under, stop := context.WithCancel(ctx)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		v.renewLease(under)
	}()
	v.end = func(ctx context.Context) {
		stop()
		<-renewed // or it would take the lease back after its release
		if err := release(context.WithoutCancel(ctx)); err != nil {
			v.log.Warn("cannot release watch lease", "error", err)
		}
	}
}

// beginWatch keeps the vigil from now on, if the invocation has work and time left: what a pass does may take seconds,
// and nobody need be woken meanwhile.
func (v *watchLease) beginWatch(ctx context.Context, left time.Duration) {
	if left > vigilEnd {
		v.keepLease(ctx)
	}
}

// releaseLease ends the vigil and reports whether there was one.
func (v *watchLease) releaseLease(ctx context.Context) bool {
	if v.end == nil {
		return false
	}
	v.end(ctx)
	v.end = nil
	return true
}

func (v *watchLease) renewLease(ctx context.Context) {
	tick := time.NewTicker(vigilRenew)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if may, err := mayWrite(beginPass(ctx, v.may)); err != nil || !may {
			continue
		}
		// A renewal that fails is tried again; when the lease runs out others wake us, which does no harm.
		if _, _, err := v.lease.Acquire(ctx, v.name, v.holder, vigilTTL); err != nil && ctx.Err() == nil {
			v.log.Warn("cannot renew watch lease", "error", err)
		}
	}
}

// timeToWatch is what is left for watching, when the next passes may take as long as the last one. A long one that the
// end of the invocation cuts off has done little, and keeps the next invocation waiting for its lease; a short one fits
// after the end of the watch anyway.
func timeToWatch(left, took time.Duration) time.Duration {
	if took > vigilEnd {
		return left - took
	}
	return left
}

// continueWatch keeps or ends the vigil after a pass, and reports whether there is to be another one. After a vigil
// there is one whatever time is left: somebody may have relied on it.
func (v *watchLease) continueWatch(ctx context.Context, busy bool, left time.Duration) bool {
	if busy && left > vigilEnd {
		v.keepLease(ctx)
		return true
	}
	if v.releaseLease(ctx) {
		return true
	}
	return (busy || v.inheritsWatch(ctx)) && left > 0
}

// inheritsWatch reports whether an idle invocation has to look again because another one, which died, still seems to
// watch: what was left to that one is for this one, and the last look comes after it does not seem so any more.
func (v *watchLease) inheritsWatch(ctx context.Context) bool {
	if v.lease == nil {
		return false
	}
	before := v.others
	sign, err := v.lease.LeaseSign(ctx, v.name)
	if v.others = sign != ""; err != nil {
		v.log.Warn("cannot read watch lease", "error", err)
	}
	return v.others || before
}
