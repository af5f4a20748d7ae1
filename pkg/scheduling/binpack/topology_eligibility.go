package binpack

import (
	"slices"

	"joiner/pkg/model/topology"
)

// eligibleDomains is the rule with the domains that count for it: those where its filter lets some node be, sold now or
// not.
func (w *problem) eligibleDomains(r topologyRule) topology.Spread {
	filter := w.counters[r.counter].filter
	id := filteredKey{r.key, filter}
	eligible, ok := w.eligibles[id]
	if !ok {
		eligible = make([]bool, len(w.domains[r.key]))
		for _, name := range w.soldDomains(id) {
			eligible[w.domainIDs[r.key][name]] = true
		}
		for _, b := range w.hosts {
			if d, ok := w.domainIDs[r.key][b.domainOf(r.key)]; ok && w.onHost(filter, b) >= 0 {
				eligible[d] = true
			}
		}
		w.eligibles[id] = eligible
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
func (w *problem) soldDomains(id filteredKey) []string {
	names, ok := w.lets[id]
	if ok {
		return names
	}
	seen := map[string]bool{}
	for _, o := range w.offers {
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
	w.lets[id] = names
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

// mayCount reports whether some node that passes the counter's filter may have pods of the kind.
func (w *problem) mayCount(k *podClass, counter int) bool {
	filter, admit := w.counters[counter].filter, k.lastRelaxation().admit
	return filter == nil || filter == admit ||
		slices.ContainsFunc(w.offers, func(o *poolOffering) bool {
			return filter.firstAlternative(o) >= 0 && admit.firstAlternative(o) >= 0
		}) ||
		slices.ContainsFunc(w.hosts, func(b *bin) bool { return w.onHost(filter, b) >= 0 && w.onHost(admit, b) >= 0 })
}

// countsOn reports whether the counter counts pods on the bin, as far as its offer tells of a new one.
func (w *problem) countsOn(counter int, b *bin) bool {
	filter := w.counters[counter].filter
	switch {
	case filter == nil:
		return true
	case b.offer != nil:
		return filter.firstAlternative(b.offer) >= 0
	}
	return w.onHost(filter, b) >= 0
}
