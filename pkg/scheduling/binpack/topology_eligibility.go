package binpack

import "joiner.sh/pkg/model/topology"

// eligibleDomains is the rule with the domains that count for it: those where its filter lets some node be, sold now or
// not.
func (top *topologyCounts) eligibleDomains(r topologyRule) topology.Spread {
	filter := top.counters[r.counter].filter
	id := filteredKey{r.key, filter}
	eligible, ok := top.eligible[id]
	if !ok {
		eligible = make([]bool, len(top.domains[r.key]))
		for _, name := range top.catalog.soldDomains(id) {
			eligible[top.domainIDs[r.key][name]] = true
		}
		for _, b := range top.nodes.hosts {
			if d, ok := top.domainIDs[r.key][b.domainOf(r.key)]; ok && filter.alternativeOn(b) >= 0 {
				eligible[d] = true
			}
		}
		top.eligible[id] = eligible
	}
	return topology.Spread{MaxSkew: r.maxSkew, MinDomains: r.min, Self: r.self, Eligible: eligible}
}

// filteredKey is a topology key with the filter of those who ask about its domains.
type filteredKey struct {
	key    string
	filter *nodeAdmission
}

// soldDomains are the domains in which the filter lets some node be that is sold, now or not. A zone in which the class
// has no subnet, where the type is never sold, or for which only a pool is that can make no node for its minValues, is
// no domain: it would stay empty for ever and hold every spread down.
func (cat *catalog) soldDomains(id filteredKey) []string {
	names, ok := cat.domains[id]
	if ok {
		return names
	}
	seen := map[string]bool{}
	for _, o := range cat.offers {
		if id.filter.refusesPool(o.model.pool) || o.model.pool.inflexible ||
			!o.model.typ.Requirements.Has(labelZone, o.Zone) {
			continue
		}
		for _, name := range o.domainsFor(id.key) {
			if !seen[name] && id.filter.firstAlternative(o) >= 0 && id.filter.leavesDomainOpen(id.key, name) {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	cat.domains[id] = names
	return names
}

// leavesDomainOpen reports whether some alternative leaves the domain open.
func (a *nodeAdmission) leavesDomainOpen(key, domain string) bool {
	for _, s := range a.alternative {
		if s.Has(key, domain) {
			return true
		}
	}
	return false
}
