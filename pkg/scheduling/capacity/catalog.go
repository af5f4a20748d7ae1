package capacity

import (
	"maps"
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/scheduling/podclass"
)

// Catalog holds what the pools of a snapshot can launch.
type Catalog struct {
	dims       podclass.Dims
	Admissions *podclass.Admissions         // of the pods and DaemonSets; they remember what offerings answered
	Pools      []*OfferingPool              // the heaviest first, among equals the last by name
	Skipped    []plan.Skip                  // NodePools that take no part and why, sorted by name
	Few        int                          // up to how many pools are all looked at
	Offerings  []*Offering                  // of all Pools but those with a reason in Aside, unavailable ones too
	bookable   []*instancetypes.Reservation // that offerings come from
	Sale       *ShareRanking                // all that is available now
	byType     map[string]*InstanceType     // of any pool

	Named   map[string][]string      // see Classes.NamedValues
	Sold    offeredDomains           // the domains of Offerings
	domains map[FilteredKey][]string // see SoldDomains
	weights *poolTiers               // once a node was wanted
}

// newCatalog is a catalog of no pools yet, in which up to few are all looked at.
func newCatalog(dims podclass.Dims, as *podclass.Admissions, few int) *Catalog {
	return &Catalog{dims: dims, Admissions: as, Few: few, Sold: offeredDomains{}, domains: map[FilteredKey][]string{},
		byType: map[string]*InstanceType{}}
}

// HasMany reports whether there are so many pools that not all are looked at.
func (cat *Catalog) HasMany() bool { return len(cat.Pools) > cat.Few }

// FilteredKey is a topology key with the filter of those who ask about its domains.
type FilteredKey struct {
	Key    string
	Filter *podclass.Admission
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

// poolTiers are the pools by weight, the heaviest first.
type poolTiers struct {
	pools [][]*OfferingPool
	known []map[pricedNeed]bool // by index of pools: what sells has answered
}

// CatalogBuilder reads what pools can launch into a catalog.
type CatalogBuilder struct {
	S       *cluster.Snapshot
	All     []cluster.StateNode
	Classes *podclass.Classes
	Stages  podclass.StageTeller
	catalog *Catalog
}

// MinPriceShare is the lowest price, in USD per hour, of the part of a node that one pod of the view takes, over all
// offerings that are available now.
func (cat *Catalog) MinPriceShare(pod *podclass.RelaxedPod, pins []podclass.DomainPin) float64 {
	return cat.Sale.MinShare(cat.Admissions.PinnedAdmission(pod.Admission, pins), pod.Class)
}

// CheapestNode is the lowest price of a node, in USD per hour, that may hold a pod of the view; NoPrice for none.
func (cat *Catalog) CheapestNode(pod *podclass.RelaxedPod) float64 {
	best := NoPrice
	for _, p := range cat.Pools {
		for _, o := range p.Sale { // cheapest first
			if o.Price >= best {
				break
			}
			if FitCount(pod.Class.Need, o.Room) > 0 && o.FirstAlternative(pod.Admission) >= 0 {
				best = o.Price
			}
		}
	}
	return best
}
