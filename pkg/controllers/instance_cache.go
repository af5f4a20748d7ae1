package controllers

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/lists"
)

// Times of an InstanceCache.
const (
	// instancesKnown is the time for which a list of all instances is used. What changes on an instance that runs is
	// hardly anything: that one ends, its node and events tell.
	instancesKnown = 5 * time.Minute
	// instanceAppears is within what time EC2 shows a new instance, as a rule. The next list of all has one that it
	// shows later.
	instanceAppears = time.Minute
)

// InstanceCache holds what a process knows of the cluster's instances. It outlives an invocation, so that not every
// pass lists thousands. The zero value knows nothing.
type InstanceCache struct {
	mu     sync.Mutex
	known  map[string]cluster.Instance
	sorted []cluster.Instance // the same; nil when that has changed
	listed time.Time          // when all were
	asked  time.Time          // when those launched lately were
}

// InstanceQuery says what a list of the instances must show.
type InstanceQuery struct {
	Now   time.Time
	Named []string // ids of those that are shown as they are now
	All   bool     // all are
}

// ListInstances returns the cluster's instances, sorted by id: those named, and those launched lately, as EC2 shows
// them now, the others as it has shown them within five minutes. Nobody may change the list.
func (c *InstanceCache) ListInstances(ctx context.Context, from InstanceLister,
	query InstanceQuery) ([]cluster.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	age := query.Now.Sub(c.listed)
	var err error
	if query.All || c.known == nil || age < 0 || age >= instancesKnown || 2*len(query.Named) > len(c.known) {
		err = c.listAll(ctx, from, query.Now)
	} else {
		err = c.listSome(ctx, from, query)
	}
	if err != nil {
		return nil, err
	}
	if c.sorted == nil {
		c.sorted = slices.SortedFunc(maps.Values(c.known),
			func(a, b cluster.Instance) int { return strings.Compare(a.ID, b.ID) })
	}
	return c.sorted, nil
}

func (c *InstanceCache) listAll(ctx context.Context, from InstanceLister, now time.Time) error {
	all, err := from.ListInstances(ctx, cluster.InstanceFilter{})
	if err != nil {
		return err
	}
	c.known = lists.Index(all, func(i cluster.Instance) string { return i.ID })
	c.sorted, c.listed, c.asked = nil, now, now
	return nil
}

// listSome brings up to date what was launched lately and what is named. One of these that EC2 does not show any more
// is forgotten.
func (c *InstanceCache) listSome(ctx context.Context, from InstanceLister, query InstanceQuery) error {
	lately := cluster.InstanceFilter{LaunchedSince: c.asked.Add(-instanceAppears)}
	named := cluster.InstanceFilter{IDs: slices.DeleteFunc(slices.Clone(query.Named), func(id string) bool {
		i, known := c.known[id]
		return known && lately.Selects(i)
	})}
	var found, others []cluster.Instance
	g, gctx := errgroup.WithContext(ctx)
	g.Go(func() (err error) { found, err = from.ListInstances(gctx, lately); return err })
	if len(named.IDs) > 0 {
		g.Go(func() (err error) { others, err = from.ListInstances(gctx, named); return err })
	}
	if err := g.Wait(); err != nil {
		return err
	}
	asked, before := lists.SetOf(named.IDs), len(c.known)
	maps.DeleteFunc(c.known, func(id string, i cluster.Instance) bool { return asked[id] || lately.Selects(i) })
	fresh := slices.Concat(found, others)
	if len(c.known) < before || len(fresh) > 0 {
		c.sorted = nil
	}
	for _, i := range fresh {
		c.known[i.ID] = i
	}
	c.asked = query.Now
	return nil
}
