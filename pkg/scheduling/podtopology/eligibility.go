package podtopology

import (
	"slices"

	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// EligibleDomains is the rule with the domains that count for it: those where its filter lets some node be that is
// there, or that is sold, now or not, and that some pod may bring. kube-scheduler knows no domain without a node.
func (top *Counts) EligibleDomains(r podclass.TopologyRule) topology.Spread {
	filter := top.Counters[r.Counter].Filter
	id := capacity.FilteredKey{Key: r.Key, Filter: filter}
	eligible, ok := top.eligible[id]
	if !ok {
		eligible = make([]bool, len(top.Domains[r.Key]))
		inhabited := inhabitedDomains(top, r.Key)
		for _, name := range top.catalog.SoldDomains(id) {
			d := top.DomainIDs[r.Key][name]
			eligible[d] = inhabited[d]
		}
		for _, b := range top.nodes.Hosts {
			if d, ok := top.DomainIDs[r.Key][b.DomainOf(r.Key)]; ok && b.AlternativeFor(filter) >= 0 {
				eligible[d] = true
			}
		}
		top.eligible[id] = eligible
	}
	return topology.Spread{MaxSkew: r.MaxSkew, MinDomains: r.MinDomains, Self: r.Self, Eligible: eligible}
}

// inhabitedDomains tells of each domain of the key whether it may get a node for a pod that waits, or has one that
// takes no more pods.
func inhabitedDomains(top *Counts, key string) []bool {
	if out, ok := top.inhabited[key]; ok {
		return out
	}
	out := make([]bool, len(top.Domains[key]))
	hosts := lists.Set(top.nodes.Hosts, func(b *capacity.Bin) string { return b.Name })
	for _, node := range top.nodes.All {
		if d, ok := top.DomainIDs[key][node.Labels()[key]]; ok && !hosts[node.Name()] {
			out[d] = true
		}
	}
	for _, b := range top.nodes.Hosts {
		for _, d := range top.MayLand(b, key) {
			out[d] = true
		}
	}
	for d, name := range top.Domains[key] {
		out[d] = out[d] || slices.ContainsFunc(top.Classes.List, func(class *podclass.Class) bool {
			return class.LastRelaxation().Admission.LeavesDomainOpen(key, name) && !keptAway(top, class, key, d)
		})
	}
	top.inhabited[key] = out
	return out
}

// keptAway reports whether required anti-affinity keeps the class out of the domain: of pods that run there, or of its
// own to them.
func keptAway(top *Counts, class *podclass.Class, key string, d int) bool {
	return slices.ContainsFunc(class.Matched,
		func(c int) bool { return top.Counters[c].Key == key && top.Tally.Anti[c][d] > 0 }) ||
		slices.ContainsFunc(class.LastRelaxation().DomainRules, func(r podclass.TopologyRule) bool {
			return r.Kind == podclass.Avoid && r.Required && r.Key == key && top.Tally.Count[r.Counter][d] > 0
		})
}

// AdmitsAll reports whether the filter lets in all nodes, new ones and those that are there, that the admission does.
func (top *Counts) AdmitsAll(filter, admit *podclass.Admission) bool {
	key := [2]*podclass.Admission{filter, admit}
	out, ok := top.filters[key]
	if !ok {
		out = !slices.ContainsFunc(top.catalog.Offerings, func(o *capacity.Offering) bool {
			return o.FirstAlternative(admit) >= 0 && o.FirstAlternative(filter) < 0
		}) && !slices.ContainsFunc(top.nodes.Hosts, func(b *capacity.Bin) bool {
			return b.AlternativeFor(admit) >= 0 && b.AlternativeFor(filter) < 0
		})
		if top.filters == nil {
			top.filters = map[[2]*podclass.Admission]bool{}
		}
		top.filters[key] = out
	}
	return out
}
