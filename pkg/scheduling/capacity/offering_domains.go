package capacity

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/podclass"
)

// FilteredKey is a topology key with the filter of those who ask about its domains.
type FilteredKey struct {
	Key    string
	Filter *podclass.Admission
}

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

// offeredDomains are the domains in which offerings are, sorted, by topology key, once they were asked for.
type offeredDomains map[string][]string

// DomainsOf are the domains of the key in which the offerings are. Nobody may change them.
func (d offeredDomains) DomainsOf(key string, offerings []*Offering) []string {
	all, ok := d[key]
	if ok {
		return all
	}
	found := map[string]bool{}
	var last *InstanceType
	for _, o := range offerings {
		if o.InstanceType == last && !podclass.VariesByOffering(key) {
			continue
		}
		last = o.InstanceType
		for _, v := range o.domainsFor(key) {
			found[v] = true
		}
	}
	d[key] = slices.Sorted(maps.Keys(found))
	return d[key]
}
