package kube

import "time"

// cachePass is a pass that works with the cache. It is under the cache's lock.
type cachePass struct {
	began time.Time // zero if it did not say so
	ahead bool      // what its snapshot needs is being proven already
}

// endPass forgets the pass and returns when it began.
func (p *cachePass) endPass() (began time.Time) {
	began = p.began
	*p = cachePass{}
	return began
}

// proveAhead has what the snapshot of the pass needs proven while others are waited for. What is unknown yet is taken
// over from a checkpoint for that, or listed.
func (p *cachePass) proveAhead(c *ClusterCache) {
	p.ahead = true
	began := p.began
	for _, k := range c.kinds {
		if (k.isMuch() || k.version == 0) && c.stop != nil {
			c.work.Go(func() { _ = c.proveKind(c.ctx, k, began) })
		}
	}
}
