package binpack

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/podclass"
)

// catalog is what the pools of a snapshot can launch.
type catalog struct {
	dims       podclass.Dims
	admissions *podclass.Admissions
	pools      []*pool // the heaviest first, among equals the last by name
	skipped    []plan.Skip
	few        int // up to how many pools are all looked at
	offers     []*poolOffering
	bookable   []*instancetypes.Reservation // that offers come from
	sale       *shareRanking                // all that is available now
	byType     map[string]*poolInstanceType // of any pool

	named   map[string][]string // see namedValues
	sold    offeredDomains
	domains map[filteredKey][]string // see soldDomains
	weights *poolTiers               // once a node was wanted
}

// newCatalog is a catalog of no pools yet, in which up to few are all looked at.
func newCatalog(dims podclass.Dims, as *podclass.Admissions, few int) *catalog {
	return &catalog{dims: dims, admissions: as, few: few, sold: offeredDomains{}, domains: map[filteredKey][]string{},
		byType: map[string]*poolInstanceType{}}
}

// hasMany reports whether there are so many pools that not all are looked at.
func (cat *catalog) hasMany() bool { return len(cat.pools) > cat.few }

// catalogBuilder reads what pools can launch into a catalog.
type catalogBuilder struct {
	s       *cluster.Snapshot
	all     []cluster.StateNode
	classes *podclass.Classes
	stages  podclass.StageTeller
	catalog *catalog
}

// findPools lists the pools that take part, the heaviest first and among equals the last by name first, with everything
// they can launch.
func (b *catalogBuilder) findPools(sells func(class string) []instancetypes.Type) {
	c := b.catalog
	sold := withoutMissing(*b.s, lowerToObserved(*b.s, overlays.ByPool(*b.s, sells)))
	c.pools, c.skipped = usablePools(b.s)
	slices.SortFunc(c.pools, func(a, b *pool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	c.named = namedValues(b.classes.List, b.s.Pods)
	for i, p := range c.pools {
		b.stages.Tell(cluster.StagePools, nil, p.Name)
		p.id, p.named = i, c.named
		p.readRequirements(b.s.Rules.RelaxMinValues)
	}
	c.countUse(b.all, sold)
	b.setAside()
	b.stockAll(sold)
	c.sale = newRanking(slices.DeleteFunc(slices.Clone(c.offers),
		func(o *poolOffering) bool { return !o.forSale() || o.model.pool.inflexible }),
		len(c.dims))
}

// lowerToObserved is what pools sell, with what nodes that stand today turned out to have less of: the class remembers
// it some minutes later.
func lowerToObserved(s cluster.Snapshot, sold func(cluster.Pool) []instancetypes.Type) func(
	cluster.Pool) []instancetypes.Type {
	seen := s.Observations()
	if len(seen) == 0 {
		return sold
	}
	done := map[string][]instancetypes.Type{}
	return func(p cluster.Pool) []instancetypes.Type {
		key := cluster.RevisionKey(p.Name, p.Revision)
		if done[key] == nil {
			done[key] = instancetypes.LowerToObserved(sold(p), seen[p.ClassKey()])
		}
		return done[key]
	}
}

// withoutMissing is what pools sell, without the resources that nodes of a type turned out never to have, whatever a
// NodeOverlay says.
func withoutMissing(s cluster.Snapshot, sold func(cluster.Pool) []instancetypes.Type) func(
	cluster.Pool) []instancetypes.Type {
	return func(p cluster.Pool) []instancetypes.Type {
		types := sold(p)
		class, _ := s.ClassOf(p.ClassKey())
		missing := class.MissingResources(s.SoldOut, s.Now)
		if len(missing) == 0 {
			return types
		}
		types = slices.Clone(types)
		for i := range types {
			for _, name := range missing[types[i].Name] {
				types[i].Allocatable = types[i].Allocatable.With(name, 0)
			}
		}
		return types
	}
}

// usablePools tells the pools that take part from those that do not, and why.
func usablePools(s *cluster.Snapshot) (pools []*pool, skipped []plan.Skip) {
	classes := map[string]instancetypes.Class{}
	for _, c := range s.Classes {
		classes[c.Name] = c
	}
	refused := &podclass.OfferAnswers{No: true}
	for _, p := range s.Pools {
		if why := skipReason(p, classes, s.Now); why != "" {
			skipped = append(skipped, plan.Skip{Pool: p.Name, Why: why})
			continue
		}
		pools = append(pools, &pool{Pool: p, refused: refused})
	}
	slices.SortFunc(skipped, func(a, b plan.Skip) int { return strings.Compare(a.Pool, b.Pool) })
	return pools, skipped
}

// skipReason says why the pool takes no part, empty when it does.
func skipReason(p cluster.Pool, classes map[string]instancetypes.Class, now time.Time) string {
	c, found := classes[p.ClassKey()]
	switch {
	case p.Deleting:
		return "it is being deleted"
	case p.Static:
		return "it is static: it keeps a fixed number of nodes, pods make none"
	case budgets.IsHibernating(p.Disruption, now):
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

// countUse finds what each pool has already.
func (cat *catalog) countUse(all []cluster.StateNode, sold func(cluster.Pool) []instancetypes.Type) {
	standing := map[string][]cluster.StateNode{}
	for _, h := range all {
		standing[h.Pool()] = append(standing[h.Pool()], h)
	}
	for _, p := range cat.pools {
		p.used = p.countUsage(standing[p.Name], func() []instancetypes.Type { return sold(p.Pool) })
	}
}

// stockAll finds what the pools can launch. Where that is too much for one pass, it looks at others each minute.
func (b *catalogBuilder) stockAll(sold func(cluster.Pool) []instancetypes.Type) {
	c := b.catalog
	list := slices.DeleteFunc(slices.Clone(c.pools), func(p *pool) bool { return p.aside != "" })
	first := 0
	if c.hasMany() && len(list) > 0 {
		minute := uint64(b.s.Now.Unix() / 60)
		first = int(minute * fittingPools % uint64(len(list)))
	}
	for i := range list {
		p := list[(first+i)%len(list)]
		if len(c.offers) >= mostOffers {
			p.aside = "one pass cannot look at so many pools, a later one will look at this one"
			continue
		}
		b.resolvePool(p, sold(p.Pool))
	}
}

// resolvePool finds what the pool can launch.
func (b *catalogBuilder) resolvePool(p *pool, types []instancetypes.Type) {
	byName := func(a, b instancetypes.Type) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(types, byName) {
		types = slices.SortedFunc(slices.Values(types), byName)
	}
	for i := range types {
		b.addModel(p, &types[i])
	}
	b.countDaemons(p)
	p.inflexible = !b.s.Rules.RelaxMinValues && p.lacksValues()
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

// addModel adds the type to the pool if the pool's requirements leave any of its offers.
func (b *catalogBuilder) addModel(p *pool, t *instancetypes.Type) {
	if !p.req.Intersects(t.Requirements) {
		return
	}
	for _, r := range p.req.All() {
		if _, defined := t.Requirements.Get(r.Key); !defined && ofInstance(r.Key) && !r.AllowsAbsent() {
			return
		}
	}
	c, as := b.catalog, b.catalog.admissions
	m := &poolInstanceType{id: len(p.models), number: as.Models, pool: p, typ: t,
		volumes: b.classes.Limits.ExpectedOn(t.Name, t.EBSVolumes)}
	c.byType[t.Name] = m
	as.Models++
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
			c.bookable = append(c.bookable, of.Reservation)
		}
		m.sells, p.offers, c.offers = append(m.sells, o), append(p.offers, o), append(c.offers, o)
		for i, d := range as.Daemons {
			if o.firstAlternative(d.Admission) >= 0 {
				o.daemons = append(o.daemons, i)
			}
		}
	}
	if len(m.sells) > 0 {
		m.typ, m.open = p.chargedType(m), m.openLabels()
		p.models = append(p.models, m)
	}
}
