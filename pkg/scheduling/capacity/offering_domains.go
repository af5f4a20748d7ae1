package capacity

import (
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/podclass"
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

// nodePriceKey is a question that NodePrices has answered.
type nodePriceKey struct {
	pricedNeed
	key  string
	pods int
}

// NodePrices is, by domain of the key, the lowest price, in USD per hour, of new nodes for so many pods of the view and
// no others, where the pins tie them. Domains for which nothing is sold are left out.
func (cat *Catalog) NodePrices(pod *podclass.RelaxedPod, pins []podclass.DomainPin, key string,
	pods int) map[string]float64 {
	admit := cat.Admissions.PinnedAdmission(pod.Admission, pins)
	id := nodePriceKey{pricedNeed{admit, pod.Class.Shape}, key, pods}
	if out, ok := cat.Sale.nodes[id]; ok {
		return out
	}
	out := map[string]float64{}
	cat.Sale.nodes[id] = out
	for _, o := range cat.Sale.offerings {
		fit := FitCount(pod.Class.Need, o.Room)
		if fit == 0 || o.FirstAlternative(admit) < 0 {
			continue
		}
		price := o.Price * float64((pods-1)/fit+1)
		for _, name := range o.domainsFor(key) {
			if known, ok := out[name]; !ok || price < known {
				out[name] = price
			}
		}
	}
	return out
}
