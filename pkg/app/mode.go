package app

import (
	"context"
	"sync"
	"time"

	"joiner/pkg/gate"
	"joiner/pkg/metric"
	"joiner/pkg/setting"
)

const (
	// leaderLease is what the controllers of Karpenter elect their leader by (spec core.md §8).
	leaderLease = "karpenter-leader-election"
	// lookAgain is how long a look at the leader lease is believed. Karpenter keeps its lease for 15 seconds.
	lookAgain = 5 * time.Second
)

// leases finds out who holds a lease; empty for nobody.
type leases interface {
	Holder(ctx context.Context, namespace, name string) (string, error)
}

// permission says whether this process may change anything: not in mode observe, and not while another controller leads the cluster.
// It may be used by several goroutines.
type permission struct {
	mode       string
	namespaces []string // where a leader lease may be
	leases     leases
	now        func() time.Time
	found      func(namespace, holder string) // another controller leads; called once per look

	mu     sync.Mutex
	looked time.Time
	held   bool
}

// open is what a gate asks.
func (p *permission) open(ctx context.Context) (bool, error) {
	if p.mode == setting.ModeObserve {
		return false, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.now().Sub(p.looked) < lookAgain {
		return !p.held, nil
	}
	held := false
	for _, namespace := range p.namespaces {
		holder, err := p.leases.Holder(ctx, namespace, leaderLease)
		if err != nil {
			return false, err
		}
		if holder != "" {
			held = true
			p.found(namespace, holder)
		}
	}
	p.looked, p.held = p.now(), held
	return !held, nil
}

// newGate makes the gate before everything that changes something.
func (a *App) newGate() *gate.Gate {
	p := &permission{mode: a.set.Mode, namespaces: a.set.KarpenterNamespaces, leases: a.kube, now: time.Now,
		found: func(namespace, holder string) {
			a.metrics.Put(metric.Record{Values: []metric.Value{metric.Total(metric.RefusedByLease, 1)}})
			a.log.Error("another controller leads this cluster: Joiner only observes until it is gone or Joiner's mode is observe",
				"lease", namespace+"/"+leaderLease, "holder", holder)
		}}
	return &gate.Gate{Open: p.open, Log: a.log}
}
