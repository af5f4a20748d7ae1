package sim

import (
	"fmt"
	"maps"
	"slices"

	v1 "joiner/pkg/api/v1"
	"joiner/pkg/model/cluster"
)

// drawStatic makes a pool with a fixed number of nodes, sometimes. It comes last: what pods ask for is said of the
// others.
func (w *world) drawStatic() {
	if !w.drawChance(0.35) {
		return
	}
	p := cluster.Pool{Name: "fixed", UID: "uid-fixed", Class: "default", Ready: true, Uncounted: true, Hash: "1",
		Static: true, Replicas: w.drawInt(1, 3),
		TerminationGrace: w.pools[0].TerminationGrace, Disruption: w.pools[0].Disruption}
	if w.drawChance(0.3) {
		p.ExpireAfter = w.pools[0].ExpireAfter
	}
	w.pools = append(w.pools, p)
}

// staticPool is the pool with a fixed number of nodes, or nil.
func (w *world) staticPool() *cluster.Pool {
	if last := len(w.pools) - 1; last >= 0 && w.pools[last].Static {
		return &w.pools[last]
	}
	return nil
}

// changeStatic is kubectl scale, or an edit of the template, after which every node of the pool has drifted.
func (w *world) changeStatic() {
	p := w.staticPool()
	switch {
	case p == nil:
	case w.drawChance(0.7):
		p.Replicas = w.drawInt(0, 4)
		w.addTrace("pool %s is to have %d nodes", p.Name, p.Replicas)
	default:
		p.Hash += "1"
		w.addTrace("the template of pool %s is changed", p.Name)
	}
}

// calmStatic ends the drift of nodes that would be replaced at rest only because they drifted before.
func (w *world) calmStatic() {
	p := w.staticPool()
	if p == nil {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(w.claims)) {
		if c := w.claims[name]; c.Pool == p.Name && c.Annotations[v1.AnnotationNodePoolHash] != p.Hash {
			c.Annotations = mergeAnnotations(c.Annotations, map[string]string{v1.AnnotationNodePoolHash: p.Hash})
			w.writeClaim(c, nil)
		}
	}
}

// tooMany reports whether the claim is of a static pool that has more nodes than it is to have, so that nobody counts
// on it: its removal may have been tried and not done.
func (w *world) tooMany(c *claim) bool {
	p := w.staticPool()
	if p == nil || c.Pool != p.Name {
		return false
	}
	have := int64(0)
	for _, other := range w.claims {
		if other.Pool == p.Name && other.Deleting.IsZero() {
			have++
		}
	}
	return have > p.Replicas
}

// staticProblems says whether the pool has another number of nodes than it is to have.
func (w *world) staticProblems() []string {
	p := w.staticPool()
	if p == nil {
		return nil
	}
	have := int64(0)
	for _, c := range w.claims {
		if c.Pool == p.Name {
			have++
		}
	}
	if have == p.Replicas {
		return nil
	}
	return []string{fmt.Sprintf("pool %s has %d nodes and is to have %d", p.Name, have, p.Replicas)}
}
