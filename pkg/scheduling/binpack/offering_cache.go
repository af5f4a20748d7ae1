package binpack

import (
	"maps"
	"reflect"
	"slices"
	"time"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
)

// OfferingCache keeps from one pass to the next what is sold and the stock made of that, as long as all is the same
// that those depend on. What it gives is what Sells and Stocked would make anew. Catalogs and types are values: nobody
// may change one that was given to it. The zero value is empty, a nil one keeps nothing. It may not be used
// concurrently.
type OfferingCache struct {
	catalog  instancetypes.Catalog
	resolved map[string]resolvedTypes // by class
	stock    *WhatIf
}

// resolvedTypes are the types of a class as they are from one time to another.
type resolvedTypes struct {
	class       instancetypes.Class
	unavailable []instancetypes.UnavailableOffering
	from        time.Time
	until       time.Time // zero for ever
	types       []instancetypes.Type
}

// Offerings is the market of the snapshot's catalog.
func (cache *OfferingCache) Offerings(s cluster.Snapshot) Offerings {
	if cache == nil {
		return ResolveOfferings(s)
	}
	if !reflect.DeepEqual(cache.catalog, s.Catalog) {
		cache.catalog, cache.resolved = s.Catalog, map[string]resolvedTypes{}
	}
	asked := map[string]bool{}
	return func(class string) []instancetypes.Type {
		have := cache.resolved[class]
		if asked[class] {
			return have.types
		}
		c, exists := s.ClassOf(class)
		if asked[class] = true; !exists {
			delete(cache.resolved, class)
			return nil
		}
		if have.types == nil || !have.stillValid(s.Now) || !reflect.DeepEqual(have.class, c) ||
			!slices.Equal(have.unavailable, s.Unavailable) {
			have = resolvedTypes{class: c, unavailable: slices.Clone(s.Unavailable), from: s.Now,
				until: instancetypes.ValidUntil(c, s.Unavailable, s.Now), types: resolveClass(s, c)}
			cache.resolved[class] = have
		}
		return have.types
	}
}

func (r resolvedTypes) stillValid(now time.Time) bool {
	return !now.Before(r.from) && (r.until.IsZero() || now.Before(r.until))
}

// WhatIf is the stock for snapshots that differ from s in their nodes, in their claims, and in where pods are.
func (cache *OfferingCache) WhatIf(s cluster.Snapshot, sells Offerings) *WhatIf {
	if cache == nil {
		return newWhatIf(s, sells)
	}
	if cache.stock == nil || !cache.stock.reuseFor(s, sells) {
		cache.stock = newWhatIf(s, sells)
	}
	return cache.stock
}

// reuseFor makes the stock that of the snapshot, if that would have the same.
func (w *WhatIf) reuseFor(s cluster.Snapshot, sells Offerings) bool {
	from, was := w.from, w.from.S
	if len(s.Pools) > from.Catalog.Few || countRemembered(from) > 2*w.size+mostLearnt || !reflect.DeepEqual(
		[]any{asOffered(s.Pools), s.Classes, s.Daemons, s.Overlays, s.Rules, s.Observations()},
		[]any{asOffered(was.Pools), was.Classes, was.Daemons, was.Overlays, was.Rules, was.Observations()}) {
		return false
	}
	for _, c := range s.Classes {
		if a, b := sells(c.Name), w.sells(c.Name); len(a) != len(b) || len(a) > 0 && &a[0] != &b[0] {
			return false
		}
	}
	problem := packing.NewSharedDemand(allWaiting(s))
	if _, skipped := capacity.UsablePools(&problem.S); !slices.Equal(skipped, from.Catalog.Skipped) ||
		!reflect.DeepEqual(problem.Classes.Limits, from.Classes.Limits) ||
		!maps.Equal(problem.Classes.Aside, from.Classes.Aside) ||
		!slices.Equal(problem.Classes.NeededResources(), from.Dims) ||
		!reflect.DeepEqual(problem.Classes.NamedValues(problem.S.Pods), from.Catalog.Named) {
		return false
	}
	for _, ask := range asksOf(from, problem) {
		for _, p := range from.Catalog.Pools {
			if !p.Some.Asks[ask] {
				return false
			}
		}
	}
	from.S, from.All, from.Classes.List = problem.S, problem.All, problem.Classes.List
	from.Admissions.Namespaces = topology.IndexNamespaces(problem.S.Namespaces)
	w.sells, w.sold = sells, overlays.ByPool(s, sells)
	w.faces, w.seen = capacity.NodeLabelsByName{}, &podclass.IdentityCache{} // the objects of a pass are its own
	if slices.ContainsFunc(from.Catalog.Pools, func(p *capacity.OfferingPool) bool {
		return len(p.Reserved)+len(p.Paid) > 0
	}) {
		from.Catalog.CountUse(&from.S, from.All, w.sold)
		w.few, w.worth = rankScarceOfferings(from), cachedPrices{}
	}
	return true
}

// asOffered are the pools without what has no part in what they can launch.
func asOffered(pools []cluster.Pool) []cluster.Pool {
	pools = slices.Clone(pools)
	for i := range pools {
		pools[i].Disruption = cluster.Disruption{}
	}
	return pools
}
