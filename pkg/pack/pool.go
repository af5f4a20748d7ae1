package pack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"joiner/pkg/budget"
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
	id       int
	req      require.Set         // requirements and template labels
	open     []string            // custom keys for which pods may choose the value
	named    map[string][]string // for those: the values that any pod names, sorted
	refused  *answers            // of those that may never be here
	aside    string              // why nobody looks what it can launch, empty when somebody does
	models   []*model
	offers   []*offer
	sale     []*offer // those available now, see forSale
	forSale  []*model // the models that those are of, in the same order
	reserved []*offer // of them, those in capacity reservations, which sale does not have
	paid     []*offer // of them, those that commitments cover, which sale does not have
	used     usage

	mayBeOneType bool // a launch may name a single type, as those into capacity reservations do: minValues ask for no more, or may be lowered

	some    few           // see cull
	largest resource.List // what any node takes of the limits at most, where there are any
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
	typ    *catalog.Type
	open   require.Set // see openLabels
	sells  []*offer
	sale   []*offer // of them, those of the pool's sale
}

// offer is a model in a zone under a capacity type: a node that could be made.
type offer struct {
	index int // within the pool
	model *model
	catalog.Offering
	list    resource.List // of the daemons that it would run
	room    []int64       // allocatable less the daemons
	ports   []cluster.HostPort
	daemons []int // that nodes of it run, by place among the world's
}

// domains are the values that a node of the offer may have for the label.
func (o *offer) domains(key string) []string {
	if v, own := o.Label(key); own && v == "" {
		return nil
	} else if own {
		return []string{v}
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
	w.skipPools()
	slices.SortFunc(w.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	w.named = w.namedValues()
	for i, p := range w.pools {
		w.planted(StagePools, nil, p)
		p.id, p.named = i, w.named
		p.mayBeOneType = w.s.Rules.RelaxMinValues || !slices.ContainsFunc(p.Requirements.All(), func(r require.Requirement) bool { return r.MinValues > 1 })
		p.req = p.Requirements.AndSet(require.FromLabels(p.Labels)).And(require.Of(labelPool, p.Name), require.Of(labelClass, p.Class))
		for _, r := range p.req.All() {
			if _, single := r.Single(); !single && !wellKnown(r.Key) {
				p.open = append(p.open, r.Key)
			}
		}
	}
	w.countUse(sold)
	w.setAside()
	w.stockAll(sold)
	w.sale = newRanking(slices.DeleteFunc(slices.Clone(w.offers), func(o *offer) bool { return !o.forSale() }), len(w.dims))
}

// skipPools tells those that take part from those that do not.
func (w *world) skipPools() {
	classes := map[string]catalog.Class{}
	for _, c := range w.s.Classes {
		classes[c.Name] = c
	}
	refused := &answers{no: true}
	for _, p := range w.s.Pools {
		if why := w.skip(p, classes); why != "" {
			w.skipped = append(w.skipped, plan.Skip{Pool: p.Name, Why: why})
			continue
		}
		w.pools = append(w.pools, &pool{Pool: p, refused: refused})
	}
	slices.SortFunc(w.skipped, func(a, b plan.Skip) int { return strings.Compare(a.Pool, b.Pool) })
}

// countUse finds what each pool has already.
func (w *world) countUse(sold func(cluster.Pool) []catalog.Type) {
	standing := map[string][]cluster.Host{}
	for _, h := range w.all {
		standing[h.Pool()] = append(standing[h.Pool()], h)
	}
	for _, p := range w.pools {
		p.used = p.use(standing[p.Name], func() []catalog.Type { return sold(p.Pool) })
	}
}

// stockAll finds what the pools can launch. Where that is too much for one pass, it looks at others each minute.
func (w *world) stockAll(sold func(cluster.Pool) []catalog.Type) {
	list := slices.DeleteFunc(slices.Clone(w.pools), func(p *pool) bool { return p.aside != "" })
	first := 0
	if len(w.pools) > w.few && len(list) > 0 {
		minute := uint64(w.s.Now.Unix() / 60)
		first = int(minute * fittingPools % uint64(len(list)))
	}
	for i := range list {
		p := list[(first+i)%len(list)]
		if len(w.offers) >= mostOffers {
			p.aside = "one pass cannot look at so many pools, a later one will look at this one"
			continue
		}
		w.stock(p, sold(p.Pool))
	}
}

// stock finds what the pool can launch.
func (w *world) stock(p *pool, types []catalog.Type) {
	byName := func(a, b catalog.Type) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(types, byName) {
		types = slices.SortedFunc(slices.Values(types), byName)
	}
	for i := range types {
		w.addModel(p, &types[i])
	}
	p.sale = forSale(p.offers)
	for _, o := range p.sale {
		if len(o.model.sale) == 0 {
			p.forSale = append(p.forSale, o.model)
		}
		o.model.sale = append(o.model.sale, o)
	}
	if len(p.Limited) > 0 {
		for _, m := range p.forSale {
			p.largest = p.largest.Max(m.typ.Capacity)
		}
	}
	for _, o := range p.offers {
		switch {
		case o.Reservation != nil && o.Available:
			p.reserved = append(p.reserved, o)
		case len(o.Paid) > 0:
			p.paid = append(p.paid, o)
		}
	}
}

// namedValues lists the label values for labels that nobody but a pool decides which pods name that wait, or run and may have to move: a
// pool has the same to offer whichever of them wait.
func (w *world) namedValues() map[string][]string {
	out := map[string][]string{}
	for _, k := range w.kinds {
		names(out, &k.pod)
	}
	for i := range w.s.Pods {
		if p := &w.s.Pods[i]; p.NodeName != "" && p.Reschedulable() {
			names(out, p)
		}
	}
	for key, list := range out { // each on its own
		slices.Sort(list)
		out[key] = slices.Compact(list)
	}
	return out
}

// names adds the label values that the pod names, by label.
func names(to map[string][]string, p *cluster.Pod) {
	for key, v := range p.NodeSelector { // sorted later
		if !wellKnown(key) {
			to[key] = append(to[key], v)
		}
	}
	for _, term := range p.NodeAffinity {
		for _, r := range term {
			switch {
			case wellKnown(r.Key):
			case r.Not:
				to[r.Key] = append(to[r.Key], anyValue(r)) // a node that keeps to it may get this
			default:
				to[r.Key] = append(to[r.Key], r.Values...)
			}
		}
	}
}

// choices are the values that nodes of the pool may get for a custom label: those that pods name, else one that is made up.
func (p *pool) choices(r require.Requirement) []string {
	out := slices.DeleteFunc(slices.Clone(p.named[r.Key]), func(v string) bool { return !r.Has(v) })
	if len(out) == 0 || !r.Not {
		return []string{anyValue(r)}
	}
	return out
}

func (w *world) skip(p cluster.Pool, classes map[string]catalog.Class) string {
	c, found := classes[p.Class]
	switch {
	case p.Deleting:
		return "it is being deleted"
	case p.Static:
		return "it is static: it keeps a fixed number of nodes, pods make none"
	case budget.Asleep(p.Disruption, w.s.Now):
		return fmt.Sprintf("it sleeps, for %s from each %q on", p.Disruption.SleepFor, p.Disruption.SleepAt)
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
func (w *world) addModel(p *pool, t *catalog.Type) {
	if !p.req.Intersects(t.Requirements) {
		return
	}
	for _, r := range p.req.All() {
		if _, defined := t.Requirements.Get(r.Key); !defined && ofInstance(r.Key) && !r.AllowsAbsent() {
			return
		}
	}
	m := &model{id: len(p.models), number: w.models, pool: p, typ: t}
	w.models++
	all := make([]offer, 0, len(t.Offerings))
	m.sells = make([]*offer, 0, len(t.Offerings))
	for _, of := range t.Offerings {
		if !of.Meets(p.req) {
			continue
		}
		if !(of.Price >= 0) || math.IsInf(of.Price, 0) { // NaN too
			of.Available, of.Why, of.Price = false, fmt.Sprintf("at %v USD/h, which is no price", of.Price), 0
		}
		all = append(all, offer{index: len(p.offers), model: m, Offering: of})
		o := &all[len(all)-1]
		if of.Reservation != nil {
			w.bookable = append(w.bookable, of.Reservation)
		}
		m.sells, p.offers, w.offers = append(m.sells, o), append(p.offers, o), append(w.offers, o)
		for i, d := range w.daemons {
			if d.admit.check(o) >= 0 {
				o.list = o.list.Add(d.pod.Need)
				o.ports = append(o.ports, d.pod.HostPorts...)
				o.daemons = append(o.daemons, i)
			}
		}
		o.room = w.vector(t.Allocatable.Sub(o.list))
	}
	if len(m.sells) > 0 {
		m.typ, m.open = p.charged(m), m.openLabels()
		p.models = append(p.models, m)
	}
}

// ofInstance reports whether the instance alone, and neither the pool nor a pod, decides the label's value.
func ofInstance(key string) bool { return wellKnown(key) && key != labelPool && key != labelClass }

// label is what is known of a label of the model's nodes, many-valued where offers or pods decide; false when they do not carry
// it.
func (m *model) label(key string) (require.Requirement, bool) {
	mine, ok := m.pool.req.Get(key)
	theirs, defined := m.typ.Requirements.Get(key)
	switch {
	case ok && defined:
		return mine.Intersect(theirs), true
	case defined:
		return theirs, true
	}
	return mine, ok && !ofInstance(key)
}

// use counts the capacity of a pool's hosts that are not being deleted. A claim that is not launched yet counts as the largest
// type it may become, so that limits hold whatever EC2 gives.
func (p *pool) use(hosts []cluster.Host, types func() []catalog.Type) usage {
	var u usage
	for _, h := range hosts {
		if h.Deleting() {
			continue
		}
		u.nodes++
		c := h.Capacity()
		if c.IsZero() && h.Claim != nil {
			for _, t := range types() {
				if h.Claim.Requirements.Has(labelType, t.Name) && h.Claim.Requirements.Intersects(t.Requirements) {
					c = c.Max(t.Capacity)
				}
			}
			c = c.Max(h.Claim.Requests)
		}
		u.list = u.list.Add(c)
		if p.limitsPrice() {
			u.list = u.list.Add(resource.List{}.With(cluster.LimitUSD, Charge(h, types())))
		}
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
