package capacity

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

// FindPools lists the pools that take part, the heaviest first and among equals the last by name first, with everything
// they can launch. Up to few pools are all looked at, unless they sell more than one pass looks at.
func (b *CatalogBuilder) FindPools(dims podclass.Dims, as *podclass.Admissions, few int,
	sells func(class string) []instancetypes.Type) *Catalog {
	c := b.listPools(dims, as, few)
	sold := b.sold(sells)
	for _, p := range c.Pools {
		b.Stages.Tell(cluster.StagePools, nil, p.Name)
		b.readPool(p)
	}
	c.CountUse(b.S, b.All, sold)
	b.setAside()
	b.stockAll(sold)
	if len(c.Offerings) >= mostOfferings && !c.HasMany() {
		return b.FindPools(dims, as, 0, sells)
	}
	c.rankSale()
	return c
}

// FindEdited is FindPools for a snapshot that differs from that of the catalog in pods, pools and settings alone. Pools
// that are offered as they were are taken from the list, and those found anew added to it. It is nil where that is too
// much for one pass.
func (b *CatalogBuilder) FindEdited(was *Catalog, list *[]*OfferingPool,
	sells func(class string) []instancetypes.Type) *Catalog {
	c := b.listPools(was.dims, was.Admissions, was.Few)
	c.Offerings = make([]*Offering, 0, len(was.Offerings))
	for i, p := range c.Pools {
		if len(c.Offerings) >= mostOfferings {
			return nil
		}
		have := slices.IndexFunc(*list, func(x *OfferingPool) bool {
			return x.offeredAs(p, c.Named, b.S.Rules.RelaxMinValues)
		})
		if have < 0 {
			b.readPool(p)
			b.resolvePool(p, b.sold(sells)(p.Pool))
			have, *list = len(*list), append(*list, p)
		}
		x := (*list)[have]
		x.Pool, x.ID, c.Pools[i] = p.Pool, i, x
		c.addOfferings(x)
	}
	if slices.Equal(c.Pools, was.Pools) && slices.Equal(c.Skipped, was.Skipped) {
		return was
	}
	c.rankSale()
	return c
}

// listPools is a catalog of the pools that take part, of which nothing is known yet.
func (b *CatalogBuilder) listPools(dims podclass.Dims, as *podclass.Admissions, few int) *Catalog {
	c := newCatalog(dims, as, few)
	b.catalog = c
	c.Pools, c.Skipped = UsablePools(b.S)
	slices.SortFunc(c.Pools, func(a, b *OfferingPool) int {
		return cmp.Or(cmp.Compare(b.Weight, a.Weight), strings.Compare(b.Name, a.Name))
	})
	c.Named = b.Classes.NamedValues(b.S.Pods)
	for i, p := range c.Pools {
		p.ID = i
	}
	return c
}

// readPool finds what the pool asks of its nodes.
func (b *CatalogBuilder) readPool(p *OfferingPool) {
	as := b.catalog.Admissions
	p.number, p.named, p.relaxed = as.Pools, b.catalog.Named, b.S.Rules.RelaxMinValues
	as.Pools++
	p.readRequirements()
}

// sold returns a function that lists the instance types each pool can launch.
func (b *CatalogBuilder) sold(sells func(class string) []instancetypes.Type) func(cluster.Pool) []instancetypes.Type {
	return withoutMissing(*b.S, lowerToObserved(*b.S, overlays.ByPool(*b.S, sells)))
}

// addOfferings adds what the pool can launch.
func (cat *Catalog) addOfferings(p *OfferingPool) {
	cat.Offerings = append(cat.Offerings, p.Offerings...)
	for _, t := range p.allowed {
		cat.byType[t.Type.Name] = t
	}
	for _, o := range p.Offerings {
		if o.Reservation != nil {
			cat.bookable = append(cat.bookable, o.Reservation)
		}
	}
}

// rankSale ranks all that is available now.
func (cat *Catalog) rankSale() {
	var list []*Offering
	for _, p := range cat.Pools {
		if !p.inflexible {
			list = append(list, p.Sale...)
		}
	}
	cat.Sale = NewRanking(list, len(cat.dims))
}

// lowerToObserved returns the types that pools sell, lowered to the capacity that nodes of today turned out to have:
// the class remembers it some minutes later.
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

// withoutMissing returns the types that pools sell, without the resources that nodes of a type turned out never to
// have, whatever a NodeOverlay says.
func withoutMissing(s cluster.Snapshot, sold func(cluster.Pool) []instancetypes.Type) func(
	cluster.Pool) []instancetypes.Type {
	return func(p cluster.Pool) []instancetypes.Type {
		types := sold(p)
		class, _ := s.ClassOf(p.ClassKey())
		missing := class.MissingResources(s.Unavailable, s.Now)
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

// UsablePools tells the pools that take part from those that do not, and why.
func UsablePools(s *cluster.Snapshot) (pools []*OfferingPool, skipped []plan.Skip) {
	classes := map[string]instancetypes.Class{}
	for _, c := range s.Classes {
		classes[c.Name] = c
	}
	refused := &podclass.OfferingAnswers{No: true}
	for _, p := range s.Pools {
		if why := skipReason(p, classes, s.Now); why != "" {
			skipped = append(skipped, plan.Skip{Pool: p.Name, Why: why})
			continue
		}
		class := classes[p.ClassKey()]
		pools = append(pools, &OfferingPool{Pool: p, refused: refused,
			provides: func(part string) bool { return s.NewNodeProvides(class, part) }})
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

// CountUse finds what each pool has already. A claim that got no instance in all its time is nothing that it has.
func (cat *Catalog) CountUse(s *cluster.Snapshot, all []cluster.StateNode,
	sold func(cluster.Pool) []instancetypes.Type) {
	standing := map[string][]cluster.StateNode{}
	for _, node := range all {
		if node.Node != nil || !node.Claim.NeverLaunched(s.Now, s.Rules) {
			standing[node.Pool()] = append(standing[node.Pool()], node)
		}
	}
	for _, p := range cat.Pools {
		p.Used = p.countUsage(standing[p.Name], func() []instancetypes.Type { return sold(p.Pool) })
	}
}

// stockAll finds what the pools can launch. Where that is too much for one pass, it looks at others each minute.
func (b *CatalogBuilder) stockAll(sold func(cluster.Pool) []instancetypes.Type) {
	c := b.catalog
	list := slices.DeleteFunc(slices.Clone(c.Pools), func(p *OfferingPool) bool { return p.Aside != "" })
	first := 0
	if c.HasMany() && len(list) > 0 {
		first = int(b.S.Minute() * fittingPools % uint64(len(list)))
	}
	for i := range list {
		p := list[(first+i)%len(list)]
		if len(c.Offerings) >= mostOfferings {
			p.Aside = "one pass cannot look at so many pools, a later one will look at this one"
			continue
		}
		b.resolvePool(p, sold(p.Pool))
		c.addOfferings(p)
	}
}

// resolvePool finds what the pool can launch.
func (b *CatalogBuilder) resolvePool(p *OfferingPool, types []instancetypes.Type) {
	byName := func(a, b instancetypes.Type) int { return strings.Compare(a.Name, b.Name) }
	if !slices.IsSortedFunc(types, byName) {
		types = slices.SortedFunc(slices.Values(types), byName)
	}
	limits := b.Classes.Limits.LoweredFrom(func(name string) int64 {
		i, found := slices.BinarySearchFunc(types, name,
			func(t instancetypes.Type, name string) int { return strings.Compare(t.Name, name) })
		if !found {
			return 0
		}
		return types[i].EBSVolumes
	})
	offerings := 0
	for i := range types {
		offerings += len(types[i].Offerings)
	}
	p.Offerings, p.allowed = make([]*Offering, 0, offerings), make([]*InstanceType, 0, len(types))
	for i := range types {
		b.addModel(p, &types[i], limits)
	}
	b.countDaemons(p)
	p.inflexible = !p.relaxed && p.lacksValues()
	p.Sale = forSale(p.Offerings)
	for _, o := range p.Sale {
		if len(o.InstanceType.sale) == 0 {
			p.ForSale = append(p.ForSale, o.InstanceType)
		}
		o.InstanceType.sale = append(o.InstanceType.sale, o)
	}
	if len(p.Limited) > 0 {
		for _, t := range p.ForSale {
			p.Largest = p.Largest.Max(t.Type.Capacity)
		}
	}
	for _, o := range p.Offerings {
		switch {
		case o.Reservation != nil && o.Available:
			p.Reserved = append(p.Reserved, o)
		case len(o.Paid) > 0:
			p.Paid = append(p.Paid, o)
		}
	}
}

// addModel adds the type to the pool if the pool's requirements leave any of its offerings.
func (b *CatalogBuilder) addModel(p *OfferingPool, t *instancetypes.Type, limits cluster.VolumeLimits) {
	if !p.Required.Intersects(t.Requirements) || t.PartOfGPU && !p.choosesGPUs() {
		return
	}
	for _, r := range p.Required.All() {
		if _, defined := t.Requirements.Get(r.Key); !defined && ofInstance(r.Key) && !r.AllowsAbsent() {
			return
		}
	}
	as := b.catalog.Admissions
	it := &InstanceType{id: len(p.Models), number: as.Models, Pool: p, Type: t,
		Volumes: limits.ExpectedOn(t.Name, t.EBSVolumes)}
	p.allowed = append(p.allowed, it)
	as.Models++
	all := make([]Offering, 0, len(t.Offerings))
	it.Sells = make([]*Offering, 0, len(t.Offerings))
	for _, of := range t.Offerings {
		if !of.Meets(p.Required) {
			continue
		}
		if !(of.Price >= 0) || math.IsInf(of.Price, 0) { // NaN too
			of.Available, of.Why, of.Price = false, fmt.Sprintf("at %v USD/h, which is no price", of.Price), 0
		}
		all = append(all, Offering{index: len(p.Offerings), InstanceType: it, Offering: of})
		o := &all[len(all)-1]
		it.Sells, p.Offerings = append(it.Sells, o), append(p.Offerings, o)
		for i, d := range as.Daemons {
			if o.FirstAlternative(d.Admission) >= 0 {
				o.Daemons = append(o.Daemons, i)
			}
		}
	}
	if len(it.Sells) > 0 {
		it.Type, it.Open = p.chargedType(it), it.openLabels()
		p.Models = append(p.Models, it)
	}
}

// becomes are the offerings of its pool that a claim may become.
func (cat *Catalog) becomes(c cluster.Claim) []*Offering {
	var out []*Offering
	for _, p := range cat.Pools {
		if p.Name != c.Pool {
			continue
		}
		for _, t := range p.Models {
			if !c.Requirements.Has(instancetypes.LabelType, t.Type.Name) ||
				!c.Requirements.Intersects(t.Type.Requirements) {
				continue
			}
			for _, o := range t.Sells {
				if c.Requirements.Has(instancetypes.LabelZone, o.Zone) &&
					c.Requirements.Has(instancetypes.LabelCapacityType, o.CapacityType) {
					out = append(out, o)
				}
			}
		}
	}
	return out
}
