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
	ok, err := callPort(ctx, p.caller, take, name, func() (bool, error) {
		if l := p.api.leases[name]; l.holder != "" && l.holder != holder && time.Now().Before(l.until) {
			return false, nil
		}
		p.api.leases[name] = storedLease{holder: holder, until: time.Now().Add(ttl)}
		if name == capacityLease {
			p.inv.leased = time.Now()
		}
		return true, nil
	})
	if err != nil || !ok {
		return nil, false, err
	}
	release := func(ctx context.Context) error {
		return tryPort(ctx, p.caller, give, name, func() error {
			if p.api.leases[name].holder == holder {
				delete(p.api.leases, name)
			}
			return nil
		})
	}
	return release, true, nil
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
