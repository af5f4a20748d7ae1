package sim

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"joiner/pkg/model/cluster"
)

// oldestCached is how old what a cache shows may be, but for what was there when the invocation began.
const oldestCached = 10 * time.Second

// processCaches are the caches of the processes that wait for an invocation. Its chance is a stream of its own.
type processCaches struct {
	rng    *rand.Rand
	stale  float64 // chance of each kind that a look shows it as it was some seconds ago
	broken float64 // chance that it is shown as it was in another invocation, which is against the contract
	cold   float64 // chance of an invocation that runs in a new process
	idle   map[*Function][]*processCache
}

func drawCaches(seed uint64) *processCaches {
	rng := rand.New(rand.NewPCG(seed, 0x6361636865))
	pick := func(list ...float64) float64 { return list[rng.IntN(len(list))] }
	return &processCaches{rng: rng, stale: pick(0, 0.3, 0.8), broken: pick(0, 0, 0.2), cold: pick(0, 0.1, 0.5),
		idle: map[*Function][]*processCache{}}
}

func (c *processCaches) drawChance(p float64) bool { return c.rng.Float64() < p }

// processCache is what a process keeps of the cluster from one invocation to the next. Two that run at once have two;
// one that is killed loses its own.
type processCache struct {
	pods   cachedList[cluster.Pod]
	nodes  cachedList[cluster.Node]
	claims cachedList[cluster.Claim]
}

// cachedList is a kind as it was at a version.
type cachedList[T any] struct {
	list  []T
	at    int       // the version, 0 for never seen
	when  time.Time // it was so
	wrote bool      // this process changed the kind since, and must see that
}

// keep remembers what was read.
func (l *cachedList[T]) keep(list []T, at int) {
	*l = cachedList[T]{list: list, at: at, when: time.Now()}
}

// mayShow reports whether a watch that is late may have told no more than this to an invocation that began then. A
// broken cache tells what is older.
func (l *cachedList[T]) mayShow(began time.Time, broken bool) bool {
	return l.at > 0 && !l.wrote && (broken || l.when.After(began) && time.Since(l.when) <= oldestCached)
}

// noteWrite remembers that this process was told that it changed something.
func (c *processCache) noteWrite(call string) {
	switch {
	case strings.Contains(call, "pod") || call == "let tolerate":
		c.pods.wrote = true
	case strings.Contains(call, "node"):
		c.nodes.wrote = true
	case strings.Contains(call, "claim"):
		c.claims.wrote = true
	}
}

// take is the cache of the process in which an invocation runs: one that has run before, or a new one.
func (c *processCaches) take(fn *Function) *processCache {
	idle := c.idle[fn]
	if n := len(idle); n > 0 && !c.drawChance(c.cold) {
		c.idle[fn] = idle[:n-1]
		return idle[n-1]
	}
	return &processCache{}
}

// keep keeps the process of an invocation that ended for the next one.
func (c *processCaches) keep(inv *invocation) { c.idle[inv.fn] = append(c.idle[inv.fn], inv.cache) }

// CachedSnapshot shows of each kind what it is now or, where the watch is late, what this process has seen of it some
// seconds ago in this invocation. Once in a while, against the contract, it shows what another invocation saw long ago.
// What the process wrote since is always there.
func (p *readPorts) CachedSnapshot(ctx context.Context) (cluster.Snapshot, error) {
	return callPort(ctx, p.caller, "read cache", "", func() (cluster.Snapshot, error) {
		s := cluster.Snapshot{}
		p.showCached(&s)
		p.readRest(&s)
		s.Now = p.toSecond()
		return s, nil
	})
}

func (p *readPorts) showCached(s *cluster.Snapshot) {
	c := p.inv.cache
	s.Pods = showList(p, aPod, &c.pods, p.pods.listPods)
	s.Nodes = showList(p, aNode, &c.nodes, p.nodes.listNodes)
	s.Claims = showList(p, aClaim, &c.claims, p.listClaims)
}

// showList is the kind as it is, or as it was when this process saw it last.
func showList[T any](p *readPorts, k objectKind, l *cachedList[T], now func() []T) []T {
	broken := p.trouble && p.caches.drawChance(p.caches.broken)
	if l.mayShow(p.inv.started, broken) && p.caches.drawChance(p.caches.stale) {
		p.seen[k] = max(p.seen[k], l.at)
		return slices.Clone(l.list)
	}
	list := now()
	l.keep(list, p.seen[k])
	return slices.Clone(list)
}
