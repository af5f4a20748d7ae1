package binpack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"joiner/pkg/model/budgets"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/overlays"
	"joiner/pkg/model/plan"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
)

// pool is a NodePool that takes part.
type pool struct {
	cluster.Pool
	id       int
	req      requirements.Set    // requirements and template labels
	open     []string            // custom keys for which pods may choose the value
	named    map[string][]string // for those: the values that any pod names, sorted
	refused  *offerAnswers       // of those that may never be here
	aside    string              // why nobody looks what it can launch, empty when somebody does
	models   []*poolInstanceType
	offers   []*poolOffering
	sale     []*poolOffering     // those available now, see forSale
	forSale  []*poolInstanceType // the models that those are of, in the same order
	reserved []*poolOffering     // of them, those in capacity reservations, which sale does not have
	paid     []*poolOffering     // of them, those that commitments cover, which sale does not have
	used     poolUsage

	// a launch may name a single type, as those into capacity reservations do: minValues ask for no more, or may be
	// lowered
	mayBeOneType bool
	inflexible   bool // its minValues ask for more values than all its types have

	some    undominatedOffers // see cull
	largest resources.List    // what any node takes of the limits at most, where there are any
}

// poolUsage is what a pool has already.
type poolUsage struct {
	list  resources.List
	nodes int64
}

// poolInstanceType is an instance type as a node of one pool.
type poolInstanceType struct {
	id     int // within the pool
	pool   *pool
	number int // over all pools
	typ    *instancetypes.Type
	open   requirements.Set // see openLabels
	sells  []*poolOffering
	sale   []*poolOffering // of them, those of the pool's sale
}

// poolOffering is a model in a zone under a capacity type: a node that could be made.
type poolOffering struct {
	index int // within the pool
	model *poolInstanceType
	instancetypes.Offering
	list    resources.List // of the daemons that it would run
	room    []int64        // allocatable less the daemons
	ports   []cluster.HostPort
	daemons []int // that nodes of it run, by place among the world's
}

// domainsFor are the values that a node of the offer may have for the label.
func (o *poolOffering) domainsFor(key string) []string {
	if v, own := o.Label(key); own && v == "" {
		return nil
	} else if own {
		return []string{v}
	}
	r, ok := o.model.labelValues(key)
	switch {
	case !ok:
		return nil
	case r.Not && !wellKnown(key):
		return o.model.pool.customLabelValues(r) // pods may choose
	}
	return r.Values
}

// findPools lists the pools that take part, the heaviest first and among equals the last by name first, with everything
// they can launch.
func (w *problem) findPools(sells Offerings) {
	sold := overlays.ByPool(w.s, sells)
	w.skipPools()
	slices.SortFunc(w.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	w.named = w.namedValues()
	for i, p := range w.pools {
		w.planted(StagePools, nil, p)
		p.id, p.named = i, w.named
		p.mayBeOneType = w.s.Rules.RelaxMinValues ||
			!slices.ContainsFunc(p.Requirements.All(), func(r requirements.Requirement) bool { return r.MinValues > 1 })
		p.req = p.Requirements.AndSet(requirements.FromLabels(p.Labels)).And(requirements.Of(labelPool, p.Name),
			requirements.Of(labelClass, p.Class))
		for _, r := range p.req.All() {
			if _, single := r.Single(); !single && !wellKnown(r.Key) {
				p.open = append(p.open, r.Key)
			}
		}
	}
	w.countUse(sold)
	w.setAside()
	w.stockAll(sold)
	w.sale = newRanking(slices.DeleteFunc(slices.Clone(w.offers),
		func(o *poolOffering) bool { return !o.forSale() || o.model.pool.inflexible }),
		len(w.dims))
}

// skipPools tells those that take part from those that do not.
func (w *problem) skipPools() {
	classes := map[string]instancetypes.Class{}
	for _, c := range w.s.Classes {
		classes[c.Name] = c
	}
	refused := &offerAnswers{no: true}
	for _, p := range w.s.Pools {
		if why := w.skipPool(p, classes); why != "" {
			w.skipped = append(w.skipped, plan.Skip{Pool: p.Name, Why: why})
			continue
		}
		w.pools = append(w.pools, &pool{Pool: p, refused: refused})
	}
	slices.SortFunc(w.skipped, func(a, b plan.Skip) int { return strings.Compare(a.Pool, b.Pool) })
}

// countUse finds what each pool has already.
func (w *problem) countUse(sold func(cluster.Pool) []instancetypes.Type) {
	standing := map[string][]cluster.StateNode{}
	for _, h := range w.all {
		standing[h.Pool()] = append(standing[h.Pool()], h)
	}
	for _, p := range w.pools {
		p.used = p.countUsage(standing[p.Name], func() []instancetypes.Type { return sold(p.Pool) })
	}
}

// stockAll finds what the pools can launch. Where that is too much for one pass, it looks at others each minute.
func (w *problem) stockAll(sold func(cluster.Pool) []instancetypes.Type) {
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
		w.resolvePool(p, sold(p.Pool))
	}
}

// resolvePool finds what the pool can launch.
func (w *problem) resolvePool(p *pool, types []instancetypes.Type) {
	byName := func(a, b instancetypes.Type) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(types, byName) {
		types = slices.SortedFunc(slices.Values(types), byName)
	}
	for i := range types {
		w.addModel(p, &types[i])
	}
	p.inflexible = !w.s.Rules.RelaxMinValues && p.lacksValues()
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

// namedValues lists the label values for labels that nobody but a pool decides which pods name that wait, or run and
// may have to move: a pool has the same to offer whichever of them wait.
func (w *problem) namedValues() map[string][]string {
	out := map[string][]string{}
	for _, k := range w.kinds {
		addNamedValues(out, &k.pod)
	}
	for i := range w.s.Pods {
		if p := &w.s.Pods[i]; p.NodeName != "" && p.Reschedulable() {
			addNamedValues(out, p)
		}
	}
	for key, list := range out { // each on its own
		slices.Sort(list)
		out[key] = slices.Compact(list)
	}
	return out
}

// addNamedValues adds the label values that the pod names, by label.
func addNamedValues(to map[string][]string, p *cluster.Pod) {
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

// customLabelValues are the values that nodes of the pool may get for a custom label: those that pods name, else one
// that is made up.
func (p *pool) customLabelValues(r requirements.Requirement) []string {
	out := slices.DeleteFunc(slices.Clone(p.named[r.Key]), func(v string) bool { return !r.Has(v) })
	if len(out) == 0 || !r.Not {
		return []string{anyValue(r)}
	}
	return out
}

func (w *problem) skipPool(p cluster.Pool, classes map[string]instancetypes.Class) string {
	c, found := classes[p.Class]
	switch {
	case p.Deleting:
		return "it is being deleted"
	case p.Static:
		return "it is static: it keeps a fixed number of nodes, pods make none"
	case budgets.IsHibernating(p.Disruption, w.s.Now):
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
func (w *problem) addModel(p *pool, t *instancetypes.Type) {
	if !p.req.Intersects(t.Requirements) {
		return
	}
	for _, r := range p.req.All() {
		if _, defined := t.Requirements.Get(r.Key); !defined && ofInstance(r.Key) && !r.AllowsAbsent() {
			return
		}
	}
	m := &poolInstanceType{id: len(p.models), number: w.models, pool: p, typ: t}
	w.models++
	all := make([]poolOffering, 0, len(t.Offerings))
	m.sells = make([]*poolOffering, 0, len(t.Offerings))
	for _, of := range t.Offerings {
		if !of.Meets(p.req) {
			continue
		}
		if !(of.Price >= 0) || math.IsInf(of.Price, 0) { // NaN too
			of.Available, of.Why, of.Price = false, fmt.Sprintf("at %v USD/h, which is no price", of.Price), 0
		}
		all = append(all, poolOffering{index: len(p.offers), model: m, Offering: of})
		o := &all[len(all)-1]
		if of.Reservation != nil {
			w.bookable = append(w.bookable, of.Reservation)
		}
		m.sells, p.offers, w.offers = append(m.sells, o), append(p.offers, o), append(w.offers, o)
		for i, d := range w.daemons {
			if d.admit.firstAlternative(o) >= 0 {
				o.list = o.list.Add(d.pod.Need)
				o.ports = append(o.ports, d.pod.HostPorts...)
				o.daemons = append(o.daemons, i)
			}
		}
		o.room = w.resourceVector(t.Allocatable.Sub(o.list))
	}
	if len(m.sells) > 0 {
		m.typ, m.open = p.chargedType(m), m.openLabels()
		p.models = append(p.models, m)
	}
}

// ofInstance reports whether the instance alone, and neither the pool nor a pod, decides the label's value.
func ofInstance(key string) bool { return wellKnown(key) && key != labelPool && key != labelClass }

// labelValues is what is known of a label of the model's nodes, many-valued where offers or pods decide; false when
// they do not carry it.
func (m *poolInstanceType) labelValues(key string) (requirements.Requirement, bool) {
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

// countUsage counts the capacity of a pool's hosts that are not being deleted. A claim that is not launched yet counts
// as the largest type it may become, so that limits hold whatever EC2 gives.
func (p *pool) countUsage(hosts []cluster.StateNode, types func() []instancetypes.Type) poolUsage {
	var u poolUsage
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
			u.list = u.list.Add(resources.List{}.With(cluster.LimitUSD, LimitCharge(h, types())))
		}
	}
	return u
}

// exceededLimits names the limits of the pool that one more node of this capacity would break.
func (p *pool) exceededLimits(u poolUsage, capacity resources.List) []string {
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
