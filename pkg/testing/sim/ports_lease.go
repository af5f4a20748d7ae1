package sim

import (
	"context"
	"fmt"
	"time"
)

// leasePorts take leases.
type leasePorts struct {
	*caller
	api *apiServer
}

// Acquire takes the lease. It goes by the clock of the caller, as the real one.
func (p *leasePorts) Acquire(ctx context.Context, name, holder string, ttl time.Duration) (func(context.Context) error,
	bool,
	error) {
	take, give := "acquire lease", "release lease"
	if name != capacityLease {
		take, give = "keep watch lease", "leave watch lease"
	}
	written := p.leaseVersions(name)
	ok, err := callPort(ctx, p.caller, take, name, func() (bool, error) {
		l := p.api.leases[name]
		if l.holder != "" && l.holder != holder && time.Now().Before(l.until) {
			return false, nil
		}
		written.storeLease(storedLease{holder: holder, until: time.Now().Add(ttl)})
		if l.holder != holder { // or it is kept for longer, in the same pass
			p.inv.noteLease(name)
		}
		return true, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	if alone := p.inv.cache.keepLease(name, written.replaced, written.now); name == capacityLease && !alone {
		p.inv.cache.invalidate()
	}
	release := func(ctx context.Context) error {
		if name != capacityLease { // whoever saw it relies on the next look
			defer p.inv.cache.invalidate()
		}
		written := p.leaseVersions(name)
		err := tryPort(ctx, p.caller, give, name, func() error {
			p.inv.notePass(name)
			if p.api.leases[name].holder == holder {
				written.storeLease(storedLease{})
			}
			return nil
		})
		if err == nil && written.now > 0 {
			p.inv.cache.keepLease(name, written.replaced, written.now)
		}
		return err
	}
	return release, true, nil
}

// noteLease notes when the invocation took the lease of capacity.
func (i *invocation) noteLease(name string) {
	if name == capacityLease {
		i.leased = time.Now()
	}
}

// notePass notes how long it had it.
func (i *invocation) notePass(name string) {
	if name == capacityLease {
		i.longestPass = max(i.longestPass, time.Since(i.leased))
	}
}

// leaseWrite is one write of a lease, by the versions before and after.
type leaseWrite struct {
	api           *apiServer
	name          string
	replaced, now int
}

func (p *leasePorts) leaseVersions(name string) *leaseWrite {
	return &leaseWrite{api: p.api, name: name}
}

func (w *leaseWrite) storeLease(l storedLease) {
	w.replaced = w.api.leases[w.name].version
	l.version = w.replaced + 1
	w.api.leases[w.name], w.now = l, l.version
}

// LeaseSign is a sign of life of who holds the lease.
func (p *leasePorts) LeaseSign(ctx context.Context, name string) (string, error) {
	return callPort(ctx, p.caller, "ask who watches", name, func() (string, error) {
		if l := p.api.leases[name]; time.Now().Before(l.until) {
			return fmt.Sprint(l.holder, l.until), nil
		}
		return "", nil
	})
}
