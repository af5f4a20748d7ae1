package pack

import (
	"fmt"
	"slices"
	"strings"

	api "joiner/pkg/api/v1"
	"joiner/pkg/require"
)

const (
	// manyPools is up to how many pools all are looked at.
	manyPools = 100
	// mostAlike is how many pools that are alike, but for their names and limits, one pass looks at.
	mostAlike = 16
	// mostOffers is at how many offers a pass looks at no more pools, and fittingPools about how many of those that may launch
	// everything have so many.
	mostOffers   = 250_000
	fittingPools = 31
)

// crowd is what keeps the work of a pass small where there are very many pools: nobody looks what a pool can launch that no
// waiting pod may use, or that is like others which come first.
type crowd struct {
	w      *world
	asks   []*admission    // of the pods that wait, at their most relaxed
	named  map[string]bool // pools that a pod or a claim names
	keys   map[string]bool // of labels that a pod looks at
	alike  map[string]int  // pools looked at
	full   map[string]bool // kinds of pools of which one without limits is looked at
	byPool bool            // pools are told apart by a spread or an affinity
}

// setAside decides which pools nobody looks at, and why.
func (w *world) setAside() {
	if len(w.pools) <= w.few {
		return
	}
	c := &crowd{w: w, named: map[string]bool{}, keys: map[string]bool{}, alike: map[string]int{}, full: map[string]bool{}}
	c.prepare()
	for _, p := range w.pools {
		p.aside = c.why(p)
	}
}

func (c *crowd) prepare() {
	softTaint := c.w.softTaints()
	for _, k := range c.w.kinds {
		list := wishes(k.pod, c.w.s.Rules.IgnorePreferences, softTaint)
		c.asks = append(c.asks, c.w.admissionOf(list[len(list)-1]))
		for _, x := range list {
			c.mention(x.alternatives(true))
		}
	}
	c.asks = distinct(c.asks)
	for _, d := range c.w.daemons {
		c.mention(d.admit.alternative)
	}
	for i := range c.w.s.Pods {
		topologyKeys(&c.w.s.Pods[i], c.keys)
	}
	c.byPool = c.keys[labelPool]
	for _, h := range c.w.all {
		if h.Claim != nil && h.Allocatable().IsZero() {
			c.named[h.Pool()] = true // what it may become has to be known
		}
	}
}

// mention notes the keys that somebody looks at, and pools by their names.
func (c *crowd) mention(alternatives []require.Set) {
	for _, alt := range alternatives {
		for _, r := range alt.All() {
			if r.Key != labelPool {
				c.keys[r.Key] = true
				continue
			}
			for _, v := range r.Values {
				c.named[v] = true
			}
		}
	}
}

// why says why nobody looks at what the pool can launch, empty when somebody does.
func (c *crowd) why(p *pool) string {
	if !slices.ContainsFunc(c.asks, func(a *admission) bool { return a.hopeful(p) }) && !c.named[p.Name] {
		return "no pod that waits may be on its nodes"
	}
	if over := p.exhausted(); over != "" {
		return over
	}
	if c.named[p.Name] || c.byPool {
		return ""
	}
	unseen := []string{labelPool}
	for _, r := range p.req.All() {
		if !wellKnown(r.Key) && !c.keys[r.Key] {
			unseen = append(unseen, r.Key)
		}
	}
	id := fmt.Sprintf("%d|%s|%v", p.Weight, text(p.req.Without(unseen...)), p.Taints)
	if c.full[id] || c.alike[id] >= mostAlike {
		return "it is like other pools, which are used first"
	}
	c.alike[id]++
	c.full[id] = len(p.Limited) == 0
	return ""
}

// hopeful reports whether the pod may be on nodes of the pool, as far as can be told without looking at what it launches.
func (a *admission) hopeful(p *pool) bool {
	if a.never(p) {
		return false
	}
	return slices.ContainsFunc(a.alternative, func(alt require.Set) bool {
		return len(p.req.Refusals(alt, func(key string) bool {
			return wellKnown(key) || key == api.LabelRegistered || key == api.LabelInitialized
		})) == 0
	})
}

// exhausted names the limits that no further node can keep, empty for none.
func (p *pool) exhausted() string {
	var parts []string
	for _, name := range p.Limited {
		used := p.used.list.Get(name)
		if name == limitNodes {
			used = p.used.nodes
		}
		if used >= p.Limits.Get(name) {
			parts = append(parts, overText(p, name, used))
		}
	}
	slices.Sort(parts)
	return strings.Join(parts, " and ")
}
