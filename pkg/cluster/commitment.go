package cluster

import "joiner/pkg/catalog"

// Allot gives the account's commitments to the instances of the cluster, those that are on their way included, after those elsewhere.
// It returns which part of the price of each is paid for, by the name of its NodeClaim, and what room each commitment has left, by its
// id. Nodes that are being deleted do not count: what replaces them may have their share.
func (s Snapshot) Allot() (paid map[string]float64, left map[string]int64) {
	if len(s.Catalog.Commitments) == 0 {
		return nil, nil
	}
	var uses []catalog.Use
	for _, h := range s.Hosts() {
		if h.Claim == nil || h.Deleting() {
			continue
		}
		known := h.Known()
		one := func(label string) string {
			r, _ := known.Get(label)
			v, _ := r.Single()
			return v
		}
		switch one(catalog.LabelCapacityType) {
		case catalog.OnDemand:
		case catalog.Reserved:
			if one(catalog.LabelReservation) == catalog.CapacityBlock {
				continue // paid for in advance, by itself
			}
		default:
			continue
		}
		if typ := one(catalog.LabelType); typ != "" && one(catalog.LabelTenancy) != catalog.TenancyDedicated {
			uses = append(uses, catalog.Use{Name: h.Claim.Name, Type: typ, Zone: one(catalog.LabelZone), Since: h.Claim.Created})
		}
	}
	return s.Catalog.Allot(uses)
}
