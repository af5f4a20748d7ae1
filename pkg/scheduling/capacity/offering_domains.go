package capacity

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
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
	var last *InstanceType
	for _, o := range offerings {
		if o.InstanceType == last && !podclass.VariesByOffering(key) {
			continue
		}
		last = o.InstanceType
		all = append(all, o.domainsFor(key)...)
		if len(all) > 1<<12 {
			slices.Sort(all)
			all = slices.Compact(all)
		}
	}
	slices.Sort(all)
	d[key] = slices.Compact(all)
	return d[key]
}

// NamedValues lists the label values for labels that nobody but a pool decides which pods name that wait, or run and
// may have to move: a pool has the same to offer whichever of them wait.
func NamedValues(classes []*podclass.Class, pods []cluster.Pod) map[string][]string {
	out := map[string][]string{}
	for _, k := range classes {
		addNamedValues(out, &k.Pod)
	}
	for i := range pods {
		if p := &pods[i]; p.NodeName != "" && p.Reschedulable() {
			addNamedValues(out, p)
		}
	}
	for key, list := range out { // each on its own
		slices.Sort(list)
		out[key] = slices.Compact(list)
	}
	return out
}

// addNamedValues adds the label values that the pod names, by label.
func addNamedValues(to map[string][]string, p *cluster.Pod) {
	for key, v := range p.NodeSelector { // sorted later
		if !podclass.IsWellKnownLabel(key) {
			to[key] = append(to[key], v)
		}
	}
	for _, term := range p.NodeAffinity {
		for _, r := range term {
			switch {
			case podclass.IsWellKnownLabel(r.Key):
			case r.Not:
				to[r.Key] = append(to[r.Key], r.AnyValue()) // a node that keeps to it may get this
			default:
				to[r.Key] = append(to[r.Key], r.Values...)
			}
		}
	}
}
