package pack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	api "joiner/pkg/api/v1"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/overlay"
	"joiner/pkg/plan"
	"joiner/pkg/require"
	"joiner/pkg/resource"
)

// pool is a NodePool that takes part.
type pool struct {
	cluster.Pool
	id     int
	req    require.Set         // requirements and template labels
	open   []string            // custom keys for which pods may choose the value
	named  map[string][]string // for those: the values that any pod names, sorted
	models []*model
	sale   []*offer // those available now, see forSale
	used   usage
}

// usage is what a pool has already.
type usage struct {
	list  resource.List
	nodes int64
}

// model is an instance type as a node of one pool.
type model struct {
	id     int // within the pool
	pool   *pool
	number int // over all pools
	typ    catalog.Type
	sells  []*offer
}

// offer is a model in a zone under a capacity type: a node that could be made.
type offer struct {
	id    int
	model *model
	catalog.Offering
	list    resource.List // of the daemons that it would run
	room    []int64       // allocatable less the daemons
	ports   []cluster.HostPort
	daemons int
}

// domains are the values that a node of the offer may have for the label.
func (o *offer) domains(key string) []string {
	switch key {
	case labelZone:
		return []string{o.Zone}
	case labelZoneID:
		return []string{o.ZoneID}
	case labelCapacity:
		return []string{o.CapacityType}
	}
	r, ok := o.model.label(key)
	switch {
	case !ok:
		return nil
	case r.Not && !wellKnown(key):
		return o.model.pool.choices(r) // pods may choose
	}
	return r.Values
}

// findPools lists the pools that take part, the heaviest first and among equals the last by name first, with everything
// they can launch.
func (w *world) findPools(sells Market) {
	sold := overlay.Market(w.s, sells)
	for _, p := range w.s.Pools {
		if why := w.skip(p); why != "" {
			w.skipped = append(w.skipped, plan.Skip{Pool: p.Name, Why: why})
			continue
		}
		w.pools = append(w.pools, &pool{Pool: p})
	}
	slices.SortFunc(w.skipped, func(a, b plan.Skip) int { return strings.Compare(a.Pool, b.Pool) })
	slices.SortFunc(w.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	named := w.namedValues()
	for i, p := range w.pools {
		p.id = i
		p.req = p.Requirements.AndSet(require.FromLabels(p.Labels)).And(require.Of(labelPool, p.Name), require.Of(labelClass, p.Class))
		for _, r := range p.req.All() {
			if _, single := r.Single(); !single && !wellKnown(r.Key) {
				p.open = append(p.open, r.Key)
			}
		}
		p.named = named
		types := slices.SortedFunc(slices.Values(sold(p.Pool)), func(a, b catalog.Type) int { return strings.Compare(a.Name, b.Name) })
		for _, t := range types {
			w.addModel(p, t)
		}
		p.used = w.usage(p, types)
		var all []*offer
		for _, m := range p.models {
			all = append(all, m.sells...)
		}
		p.sale = forSale(all)
		w.sale = append(w.sale, p.sale...)
	}
	if len(w.pools) > 1 {
		w.sale = forSale(w.sale)
	}
	w.largest = make([]int64, len(w.dims))
	for _, o := range w.sale {
		for i, x := range o.room {
			w.largest[i] = max(w.largest[i], x)
		}
	}
}

// namedValues lists the label values that pods name for labels that nobody but a pool decides.
func (w *world) namedValues() map[string][]string {
	out := map[string][]string{}
	for _, k := range w.kinds {
		for key, v := range k.pod.NodeSelector { // sorted below
			out[key] = append(out[key], v)
		}
		for _, r := range slices.Concat(k.pod.NodeAffinity...) {
			if r.Not {
				out[r.Key] = append(out[r.Key], anyValue(r)) // a node that keeps to it may get this
			} else {
				out[r.Key] = append(out[r.Key], r.Values...)
			}
		}
	}
	for key, list := range out { // each on its own
		slices.Sort(list)
		if out[key] = slices.Compact(list); wellKnown(key) {
			delete(out, key)
		}
	}
	return out
}

// choices are the values that nodes of the pool may get for a custom label: those that pods name, else one that is made up.
func (p *pool) choices(r require.Requirement) []string {
	out := slices.DeleteFunc(slices.Clone(p.named[r.Key]), func(v string) bool { return !r.Has(v) })
	if len(out) == 0 || !r.Not {
		return []string{anyValue(r)}
	}
	return out
}

func (w *world) skip(p cluster.Pool) string {
	c, found := w.s.ClassOf(p.Class)
	switch {
	case p.Deleting:
		return "it is being deleted"
	case p.Static:
		return "it is static: it keeps a fixed number of nodes, pods make none"
	case !p.Ready:
		return "it is not ready: " + cmp.Or(p.Message, "no reason given")
	case !found:
		return fmt.Sprintf("its EC2NodeClass %s does not exist", p.Class)
	case !c.Ready:
		return fmt.Sprintf("its EC2NodeClass %s is not ready: %s", p.Class, cmp.Or(c.Message, "no reason given"))
	}
	return ""
}

// addModel adds the type to the pool if the pool's requirements leave any of its offers.
func (w *world) addModel(p *pool, t catalog.Type) {
	if !p.req.Intersects(t.Requirements) {
		return
	}
	m := &model{id: len(p.models), number: w.models, pool: p, typ: t}
	for _, r := range p.req.All() {
		if _, defined := t.Requirements.Get(r.Key); !defined && decided(r.Key) && !r.AllowsAbsent() {
			return
		}
	}
	w.models++
	all := make([]offer, 0, len(t.Offerings))
	m.sells = make([]*offer, 0, len(t.Offerings))
	for _, of := range t.Offerings {
		if !of.Meets(p.req) {
			continue
		}
		all = append(all, offer{id: len(w.offers), model: m, Offering: of})
		o := &all[len(all)-1]
		m.sells = append(m.sells, o)
		w.offers = append(w.offers, o)
		for _, d := range w.daemons {
			if d.admit.check(o) >= 0 {
				o.list = o.list.Add(d.pod.Need)
				o.ports = append(o.ports, d.pod.HostPorts...)
				o.daemons++
			}
		}
		o.room = w.vector(t.Allocatable.Sub(o.list))
	}
	if len(m.sells) > 0 {
		p.models = append(p.models, m)
	}
}

// label is what is known of a label of the model's nodes, many-valued where offers or pods decide.
func (m *model) label(key string) (require.Requirement, bool) {
	r, wanted := m.pool.req.Get(key)
	mine, has := m.typ.Requirements.Get(key)
	switch {
	case wanted && has:
		return r.Intersect(mine), true
	case has:
		return mine, true
	}
	return r, wanted && !decided(key)
}

// decided reports whether neither pool nor pods have a say in the label: what the type does not tell does not exist.
func decided(key string) bool { return wellKnown(key) && key != labelPool && key != labelClass }

// usage counts the capacity of the pool's nodes and claims that are not being deleted. A claim that is not launched yet
// counts as the largest type it may become, so that limits hold whatever EC2 gives.
func (w *world) usage(p *pool, types []catalog.Type) usage {
	var u usage
	for _, h := range w.s.Hosts() {
		if h.Pool() != p.Name || h.Deleting() {
			continue
		}
		u.nodes++
		c := h.Capacity()
		if c.IsZero() && h.Claim != nil {
			for _, t := range types {
				if h.Claim.Requirements.Has(labelType, t.Name) && h.Claim.Requirements.Intersects(t.Requirements) {
					c = c.Max(t.Capacity)
				}
			}
			c = c.Max(h.Claim.Requests)
		}
		u.list = u.list.Add(c)
	}
	return u
}

// exceeded names the limits of the pool that one more node of this capacity would break.
func (p *pool) exceeded(u usage, capacity resource.List) []string {
	var out []string
	for _, name := range p.Limited {
		if name == limitNodes {
			if u.nodes+1 > p.Limits.Get(name) {
				out = append(out, name)
			}
			continue
		}
		if more := capacity.Get(name); more > 0 && u.list.Get(name)+more > p.Limits.Get(name) {
			out = append(out, name)
		}
	}
	return out
}

// check returns the first alternative that lets the pod run on a node of the offer, -1 for none.
func (a *admission) check(o *offer) int {
	if o.id >= len(a.byOffer) {
		a.byOffer = append(a.byOffer, make([]int16, max(o.id+1, len(a.w.offers))-len(a.byOffer))...)
	}
	if a.byOffer[o.id] == 0 {
		a.byOffer[o.id] = -1
		if len(cluster.Untolerated(o.model.pool.Taints, a.tolerations)) == 0 {
			for i := range a.alternative {
				if a.holds(i, o) {
					a.byOffer[o.id] = int16(min(i, 1<<14)) + 1
					break
				}
			}
		}
	}
	if n := a.byOffer[o.id]; n > 0 {
		return int(n) - 1
	}
	return -1
}

// holds reports whether alternative i holds on the offer; what does not differ between a model's offers is asked once.
func (a *admission) holds(i int, o *offer) bool {
	alt := a.alternative[i]
	if !o.Meets(alt) {
		return false
	}
	number := o.model.number
	if number >= len(a.byModel[i]) {
		a.byModel[i] = append(a.byModel[i], make([]int8, max(number+1, a.w.models)-len(a.byModel[i]))...)
	}
	if a.byModel[i][number] == 0 {
		ok := true
		for _, r := range alt.All() {
			if perOffer(r.Key) {
				continue
			}
			mine, defined := o.model.label(r.Key)
			if !defined {
				ok = ok && (r.AllowsAbsent() || r.Key == api.LabelRegistered || r.Key == api.LabelInitialized)
				continue
			}
			ok = ok && mine.Overlaps(r)
		}
		a.byModel[i][number] = -1
		if ok {
			a.byModel[i][number] = 1
		}
	}
	return a.byModel[i][number] > 0
}
