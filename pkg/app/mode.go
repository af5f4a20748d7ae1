package app

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/settings"
)

const (
	// leaderBelievedFor is the time that a look at the leader lease holds. Karpenter keeps its lease for 15 seconds.
	leaderBelievedFor = 5 * time.Second
	// leaderBelievedByNotices is the same for notices of EC2: hundreds may come at once, and what they
	// do any leader would do.
	leaderBelievedByNotices = 15 * time.Second
)

// leases finds out who holds a lease; empty for nobody.
type leases interface {
	LeaseHolder(ctx context.Context, namespace, name string) (string, error)
}

// writePermission says whether this process may change anything: not in mode observe, and not while another controller
// leads the cluster. It may be used by several goroutines.
type writePermission struct {
	mode       string
	namespaces []string // where a leader lease may be
	leases     leases
	believed   time.Duration // how long a look is believed
	now        func() time.Time
	found      func(namespace, holder string) // another controller leads; called once per look

	mu     sync.Mutex
	looked time.Time
	held   bool
}

// mayWrite reports whether this process may change anything now.
func (p *writePermission) mayWrite(ctx context.Context) (bool, error) {
	if p.mode == settings.ModeObserve {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Sub(p.looked) < p.believed {
		return !p.held, nil
	}
	holders := make([]string, len(p.namespaces))
	g, gctx := errgroup.WithContext(ctx)
	for i, namespace := range p.namespaces {
		g.Go(func() (err error) {
			holders[i], err = p.leases.LeaseHolder(gctx, namespace, v1.KarpenterLeaderLease)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return false, err
	}
	held := false
	for i, holder := range holders {
		if holder != "" {
			held = true
			p.found(p.namespaces[i], holder)
		}
	}
	p.looked, p.held = p.now(), held
	return !held, nil
}

// trustUntil has looks believed for so long from now on.
func (p *writePermission) trustUntil(d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.believed = d
}

// newPermission is the permission of every function.
func (a *App) newPermission() *writePermission {
	return &writePermission{mode: a.set.Mode, namespaces: a.set.KarpenterNamespaces, leases: a.kube.Leases,
		believed: leaderBelievedFor, now: time.Now,
		found: func(namespace, holder string) {
			a.metrics.Put(metrics.Record{Values: []metrics.Value{metrics.Total(metrics.RefusedByLease, 1)}})
			a.log.Error("another controller leads this cluster: Joiner only observes until it is gone or Joiner's mode is observe",
				"lease", namespace+"/"+v1.KarpenterLeaderLease, "holder", holder)
		}}
}
