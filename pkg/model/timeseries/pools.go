package timeseries

import (
	"cmp"
	"maps"
	"math"
	"slices"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/budgets"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/metrics"
)

func (l *lister) listCluster() {
	l.addSeries(metrics.NodeCount, float64(len(l.s.StateNodes())))
	l.addSeries(stateSynced, 1)
	l.addSeries(stateUnsynced, 0)
	l.listUtilization()
	build := []string{}
	for _, k := range slices.Sorted(maps.Keys(l.o.Build)) {
		build = append(build, k, l.o.Build[k])
	}
	l.addSeries(buildInfo, 1, build...)
	waiting, ignored := 0, 0
	for i := range l.s.Pods {
		p := &l.s.Pods[i]
		switch {
		case p.Virtual || p.NodeName != "" || !p.Active():
		case p.Provisionable():
			waiting++
		case p.Unscheduled:
			ignored++
		}
	}
	l.addSeries(metrics.Unschedulable, float64(waiting), "controller", "provisioner")
	l.addSeries(queueDepth, float64(waiting), "controller", "provisioner")
	l.addSeries(ignoredPods, float64(ignored))
	if !l.s.Catalog.Time.IsZero() {
		l.addSeries(metrics.CatalogAge, l.s.Now.Sub(l.s.Catalog.Time).Seconds())
	}
}

func (l *lister) listPools() {
	counts := budgets.CountNodes(l.s)
	for _, p := range l.s.Pools {
		for _, name := range p.Counted.Names() {
			l.addSeries(poolsUsage, inUnits(name, p.Counted.Get(name)),
				"nodepool", p.Name, "resource_type", snake(name))
		}
		for _, name := range p.Limited {
			if name != cluster.LimitUSD {
				l.addSeries(poolsLimit, inUnits(name, p.Limits.Get(name)),
					"nodepool", p.Name, "resource_type", snake(name))
			}
		}
		for _, reason := range []v1.DisruptionReason{v1.DisruptionUnderutilized, v1.DisruptionEmpty,
			v1.DisruptionDrifted} {
			n, err := budgets.AllowedDisruptions(p.Disruption, reason, counts[p.Name].Total, l.s.Now)
			if err != nil {
				n = 0 // budgets that nobody can understand are closed
			}
			gone := counts[p.Name].GoneFor(reason)
			l.addSeries(poolsAllowed, float64(min(max(n-gone, 0), math.MaxInt32)), "nodepool", p.Name,
				"reason", string(reason))
			l.addSeries(poolsConsuming, float64(gone), "nodepool", p.Name, "reason", string(reason))
		}
	}
	l.listCosts()
}

// listCosts adds the cost of the nodes of each pool: by pool as NodeOverlays have it, and all together as AWS lists it.
func (l *lister) listCosts() {
	type group struct{ pool, capacityType string }
	nodes, cost, total := map[group]int{}, map[string]float64{}, 0.0
	for _, p := range l.s.Pools {
		cost[p.Name] = 0
	}
	for _, c := range l.s.Claims {
		if c.ProviderID == "" {
			continue
		}
		usd, _ := l.s.Catalog.Charge(instancetypes.OfferingKeyOf(c.Labels))
		total += usd
		nodes[group{c.Pool, c.Labels[instancetypes.LabelCapacityType]}]++
		cost[c.Pool] += overlaidPrice(l.s, c, usd)
	}
	l.addSeries(metrics.PricePerHour, total)
	for _, pool := range slices.Sorted(maps.Keys(cost)) {
		l.addSeries(metrics.PoolCost, cost[pool], "nodepool", pool)
	}
	for _, g := range slices.SortedFunc(maps.Keys(nodes), func(a, b group) int {
		return cmp.Or(cmp.Compare(a.pool, b.pool), cmp.Compare(a.capacityType, b.capacityType))
	}) {
		l.addSeries(metrics.PoolNodes, float64(nodes[g]), "nodepool", g.pool, "capacity_type", g.capacityType)
	}
}

// overlaidPrice is the price with what the heaviest valid overlay that is about the node sets, of equal ones the last
// by name, as Karpenter has it.
func overlaidPrice(s cluster.Snapshot, c cluster.Claim, usd float64) float64 {
	var best *cluster.Overlay
	for i := range s.Overlays {
		o := &s.Overlays[i]
		if o.Message != "" || o.Price == nil && o.Change == nil || !o.Requirements.Matches(c.Labels) {
			continue
		}
		if best == nil || o.Weight > best.Weight || o.Weight == best.Weight && o.Name > best.Name {
			best = o
		}
	}
	switch {
	case best == nil:
		return usd
	case best.Price != nil:
		return *best.Price
	}
	return max(0, usd+best.Change.USD+usd*best.Change.Percent/100)
}
