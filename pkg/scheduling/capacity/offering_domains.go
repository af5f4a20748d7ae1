package capacity

import (
	"joiner.sh/pkg/model/instancetypes"
)

// SoldDomains are the domains in which the filter lets some node be that is sold, now or not. A zone in which the class
// has no subnet, where the type is never sold, or for which only a pool is that can make no node for its MinValues, is
// no domain: it would stay empty for ever and hold every spread down.
func (cat *Catalog) SoldDomains(id FilteredKey) []string {
	names, ok := cat.domains[id]
	if ok {
		return names
	}
	seen := map[string]bool{}
	for _, o := range cat.Offerings {
		if o.InstanceType.Pool.refuses(id.Filter) || o.InstanceType.Pool.inflexible ||
			!o.InstanceType.Type.Requirements.Has(instancetypes.LabelZone, o.Zone) {
			continue
		}
		for _, name := range o.domainsFor(id.Key) {
			if !seen[name] && o.FirstAlternative(id.Filter) >= 0 && id.Filter.LeavesDomainOpen(id.Key, name) {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	cat.domains[id] = names
	return names
}
