package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/cluster"
)

// How old what a cache shows may be, but for what was there when the invocation began.
const (
	oldestCached       = 30 * time.Second // of pods and nodes
	oldestCachedClaims = 10 * time.Second
)

// processCaches are the caches of the processes that wait for an invocation. Its chance is a stream of its own.
type processCaches struct {
	rng    *rand.Rand
	stale  float64 // chance of each kind that a look shows it as it was some seconds ago
	broken float64 // chance that it is shown as it was in another invocation, which is against the contract
	cold   float64 // chance of an invocation that runs in a new process
	late   float64 // chance of one that runs in a process that has waited for long, as the other of two versions has
	fault  CacheFault
	idle   map[*Function][]*processCache

	checkpoints checkpoints
}

// checkpoints holds what lifecycle stored of its cache for processes that start, the latest last. Their chance is a
// stream of its own.
type checkpoints struct {
	rng     *rand.Rand
	used    float64 // chance of a new process that it begins with one
	old     float64 // chance that it is not the latest
	damaged float64 // chance that it is refused
	stored  []*processCache
}

// mostCheckpoints caps the checkpoints that are remembered.
const mostCheckpoints = 4

func drawCheckpoints(seed uint64) checkpoints {
	rng := rand.New(rand.NewPCG(seed, 0x636865636b))
	pick := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	return checkpoints{rng: rng, used: pick(0, 0.5, 1), old: pick(0, 0.3), damaged: pick(0, 0.2)}
}

// storeCheckpoint stores what a process knows at the end of an invocation.
func (c *checkpoints) storeCheckpoint(p *processCache) {
	c.stored = append(c.stored, p.copyLists())
	c.stored = c.stored[max(0, len(c.stored)-mostCheckpoints):]
}

// start is the cache of a new process: empty, or with what is stored, which is as old as it is.
func (c *checkpoints) start() *processCache {
	if len(c.stored) == 0 || c.rng.Float64() >= c.used || c.rng.Float64() < c.damaged {
		return newProcessCache()
	}
	i := len(c.stored) - 1
	if c.rng.Float64() < c.old {
		i = c.rng.IntN(len(c.stored))
	}
	return c.stored[i].copyLists()
}

// copyLists returns what another process may know of it. What it wrote itself is not among that.
func (c *processCache) copyLists() *processCache {
	out := newProcessCache()
	out.pods, out.nodes, out.claims = c.pods, c.nodes, c.claims
	out.pods.wrote, out.nodes.wrote, out.claims.wrote = false, false, false
	return out
}

func drawCaches(seed uint64) *processCaches {
	rng := rand.New(rand.NewPCG(seed, 0x6361636865))
	pick := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	return &processCaches{rng: rng, stale: pick(0, 0.3, 0.8), broken: pick(0, 0, 0.2), cold: pick(0, 0.1, 0.5),
		late: pick(0, 0.2, 0.5), idle: map[*Function][]*processCache{}, checkpoints: drawCheckpoints(seed)}
}

func (c *processCaches) drawChance(p float64) bool { return c.rng.Float64() < p }

// processCache holds what a process keeps of the cluster from one invocation to the next. Two that run at once have
// two; one that is killed loses its own.
type processCache struct {
	pods   cachedList[cluster.Pod]
	nodes  cachedList[cluster.Node]
	claims cachedList[cluster.Claim]
	fault  CacheFault

	instances *controllers.InstanceCache

	mu      sync.Mutex
	pass    time.Time      // when the pass began that is under way; zero if it did not say so
	ahead   bool           // what its snapshot needs was brought up to date
	invalid time.Time      // what was read before may not be shown
	leases  map[string]int // the version of each lease that it wrote last
}

func newProcessCache() *processCache { return &processCache{instances: &controllers.InstanceCache{}} }

// invalidate has the next look show what anybody wrote until now.
func (c *processCache) invalidate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.invalid = time.Now()
}

// setPass begins a pass or, with the zero time, forgets the one that is under way, and returns what was so before.
func (c *processCache) setPass(began time.Time) (before time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before, c.pass, c.ahead = c.pass, began, false
	return before
}

func (c *processCache) isAhead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.ahead
}

// goAhead reports whether the cache is to be brought up to date for the snapshot of a pass, once in each.
func (c *processCache) goAhead() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.pass.IsZero() || c.ahead {
		return false
	}
	c.ahead = true
	return true
}

// since is from when on a look that begins now must show everything: from when the pass began or, if it did not say so,
// from now. It ends the pass.
func (c *processCache) since() time.Time {
	if began := c.setPass(time.Time{}); !began.IsZero() {
		return began
	}
	return time.Now()
}

// keepLease remembers the version in which this process wrote a lease, and reports whether the one before was its own
// too, so that nobody else had the lease meanwhile.
func (c *processCache) keepLease(name string, replaced, written int) (alone bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.leases == nil {
		c.leases = map[string]int{}
	}
	alone = c.leases[name] == replaced && replaced > 0
	c.leases[name] = written
	return alone
}

func (c *processCache) validFrom() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.invalid
}

// cachedList is a kind as it was at a version.
type cachedList[T any] struct {
	list  []T
	at    int       // the version, 0 for never seen
	when  time.Time // it was so
	wrote bool      // this process changed the kind since, and must see that
	faultyList[T]
}

// keep remembers what was read.
func (l *cachedList[T]) keep(list []T, at int) {
	l.list, l.at, l.when, l.wrote = list, at, time.Now(), false
}

// isSince reports whether it shows everything that was stored before then, and what this process wrote.
func (l *cachedList[T]) isSince(then time.Time) bool {
	return l.at > 0 && !l.wrote && !l.when.Before(then)
}

// noteWrite remembers that this process was told that it changed something.
func (c *processCache) noteWrite(call string) {
	switch {
	case c.fault == OwnWritesIgnored:
	case strings.Contains(call, "pod") || call == "let tolerate":
		c.pods.wrote = true
	case strings.Contains(call, "node"):
		c.nodes.wrote = true
	case strings.Contains(call, "claim"):
		c.claims.wrote = true
	}
}

// take is the cache of the process in which an invocation runs: the one that ran last, one that has waited for longer,
// or a new one, which may begin with a checkpoint.
func (c *processCaches) take(fn *Function) *processCache {
	idle := c.idle[fn]
	if len(idle) == 0 || c.drawChance(c.cold) {
		p := c.checkpoints.start()
		if p.fault = c.fault; p.fault == RestoredAsNow {
			p.pods.when, p.nodes.when, p.claims.when = time.Now(), time.Now(), time.Now()
		}
		return p
	}
	i := len(idle) - 1
	if c.drawChance(c.late) {
		i = c.rng.IntN(len(idle))
	}
	p := idle[i]
	c.idle[fn] = slices.Delete(idle, i, i+1)
	p.pass, p.ahead, p.invalid = time.Time{}, false, time.Time{}
	p.pods.resume(c)
	p.nodes.resume(c)
	p.claims.resume(c)
	return p
}

// keep keeps the process of an invocation that ended for the next one, which uses the memory of its pods again.
func (c *processCaches) keep(inv *invocation) {
	for _, pods := range inv.podMemory {
		clear(pods)
	}
	c.idle[inv.fn] = append(c.idle[inv.fn], inv.cache)
	if inv.fn.Name == "lifecycle" {
		c.checkpoints.storeCheckpoint(inv.cache)
	}
}

// PendingPods lists the pods that need a node, as a look shows them that may be some seconds old. If there are any it
// begins a pass, and the cache is brought up to date while others are waited for.
func (p *readPorts) PendingPods(ctx context.Context) ([]cluster.Pod, error) {
	began := time.Now()
	return callPort(ctx, p.caller, "list pending pods", "", func() ([]cluster.Pod, error) {
		c := p.inv.cache
		pods := cluster.KeepProvisionable(showRecent(p, aPod, &c.pods, p.pods.listPods))
		for _, b := range p.api.buffers {
			pods = append(pods, b.Pods...)
		}
		if len(pods) == 0 || !c.isAhead() {
			c.setPass(began)
		}
		if len(pods) > 0 {
			p.refreshAhead()
		}
		return pods, nil
	})
}

// ListClaims lists the claims as a look shows them that may be some seconds old. Where some are being deleted, the
// cache is brought up to date for the pass that began.
func (p *readPorts) ListClaims(ctx context.Context) ([]cluster.Claim, error) {
	return callPort(ctx, p.caller, "list claims", "", func() ([]cluster.Claim, error) {
		claims := showRecent(p, aClaim, &p.inv.cache.claims, p.listClaims)
		if cluster.AnyDeleted(claims) {
			p.refreshAhead()
		}
		return claims, nil
	})
}

// refreshAhead brings the cache up to date for the snapshot of the pass that is under way, if there is one.
func (p *readPorts) refreshAhead() {
	if c := p.inv.cache; c.goAhead() {
		refreshList(p, aPod, &c.pods, p.pods.listPods)
		refreshList(p, aNode, &c.nodes, p.nodes.listNodes)
		refreshList(p, aClaim, &c.claims, p.listClaims)
	}
}

// ReadSnapshot reads everything but what AWS knows. Its lists are of different moments, in no certain order: each as it
// is, or as it was at some time since the pass began.
func (p *readPorts) ReadSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	s, c := cluster.Snapshot{}, p.inv.cache
	p.inv.looked = time.Now()
	since := c.since()
	reads := []struct {
		name string
		deed func()
	}{
		{"read pods", func() { s.Pods = showSince(p, aPod, &c.pods, since, p.pods.listPods) }},
		{"read nodes", func() { s.Nodes = showSince(p, aNode, &c.nodes, since, p.nodes.listNodes) }},
		{"read claims", func() { s.Claims = showSince(p, aClaim, &c.claims, since, p.listClaims) }},
		{"read the rest", func() { p.readRest(&s) }},
	}
	errs := make(chan error, len(reads))
	for _, r := range reads {
		go func() { errs <- tryPort(ctx, p.caller, r.name, "", func() error { r.deed(); return nil }) }()
	}
	var first error
	for range reads {
		if err := <-errs; err != nil && first == nil {
			first = err
		}
	}
	p.lendPods(s.Pods)
	s.Now = p.toSecond()
	return s, first
}

// lendPods has the pods be as a snapshot shows them, in memory that the next invocation uses again.
func (p *readPorts) lendPods(pods []cluster.Pod) {
	cluster.ExpectUnscheduled(pods)
	p.inv.podMemory = append(p.inv.podMemory, pods)
}

// CachedSnapshot shows of each kind what it is now or, where the watch is late, what this process has seen of it some
// seconds ago in this invocation. Once in a while, against the contract, it shows what another invocation saw long ago.
// What the process wrote since is always there.
func (p *readPorts) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return callPort(ctx, p.caller, "read cache", "", func() (cluster.Snapshot, error) {
		s, c := cluster.Snapshot{}, p.inv.cache
		p.inv.looked = time.Now()
		s.Pods = showRecent(p, aPod, &c.pods, p.pods.listPods)
		s.Nodes = showRecent(p, aNode, &c.nodes, p.nodes.listNodes)
		s.Claims = showRecent(p, aClaim, &c.claims, p.listClaims)
		p.readRest(&s)
		p.lendPods(s.Pods)
		s.Now = p.toSecond()
		return s, nil
	})
}

// Wait returns on news that no read of this invocation has shown. It ends the pass.
func (p *readPorts) Wait(ctx context.Context) error {
	p.inv.cache.setPass(time.Time{})
	_, err := callPort[struct{}](ctx, p.caller, "wait", "", nil)
	return err
}

// showRecent is the kind as it is or, where the watch is late, as it was some seconds ago in this invocation. A broken
// cache shows what is older.
func showRecent[T any](p *readPorts, k objectKind, l *cachedList[T], now func() []T) []T {
	oldest := oldestCached
	if k == aClaim {
		oldest = oldestCachedClaims
	}
	since := time.Now().Add(-oldest)
	if since.Before(p.inv.started) {
		since = p.inv.started
	}
	if p.trouble && p.caches.drawChance(p.caches.broken) {
		since, p.inv.misled = time.Time{}, true
	}
	return showSince(p, k, l, since, now)
}

// showSince is the kind as it is, or as it was when this process saw it last, if that was after the time given and
// others need not be seen.
func showSince[T any](p *readPorts, k objectKind, l *cachedList[T], since time.Time, now func() []T) []T {
	if !since.IsZero() && since.Before(p.inv.cache.validFrom()) {
		since = p.inv.cache.validFrom()
	}
	if p.caches.fault == ProofSkipped {
		since = time.Time{}
	}
	if l.isSince(since) && p.caches.drawChance(p.caches.stale) {
		p.seen[k] = max(p.seen[k], l.at)
		return slices.Clone(l.list)
	}
	refreshList(p, k, l, now)
	return slices.Clone(l.list)
}

// refreshList brings what the process knows of the kind up to date.
func refreshList[T any](p *readPorts, k objectKind, l *cachedList[T], now func() []T) {
	list := now()
	if l.silent && !l.wrote {
		l.when = time.Now()
		return
	}
	list = l.withFaults(p.caches, l.list, list)
	l.silent = false
	l.keep(list, p.seen[k])
}
