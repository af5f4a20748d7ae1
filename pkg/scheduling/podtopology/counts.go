package podtopology

import (
	"slices"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/plan"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
)

// Counts holds the number of pods in each domain of topology keys, as rules of pods count them.
type Counts struct {
	s          *cluster.Snapshot
	Classes    *podclass.Classes // the pods that need a place, whose rules are counted
	admissions *podclass.Admissions
	catalog    *capacity.Catalog
	nodes      *capacity.ExistingNodes
	spaces     topology.Namespaces

	Counters   []Counter // one for each topology key, group and filter that a rule asks about
	counterIDs map[string]int
	Domains    map[string][]string       // by topology key, without hostname
	DomainIDs  map[string]map[string]int // by topology key and domain: index in Domains
	Tally      DomainCounts              // of pods that stay where they are
	Total      []int                     // by counter of hostnames: pods anywhere

	identities *podclass.IdentityCache
	eligible   map[capacity.FilteredKey][]bool // see EligibleDomains
	inhabited  map[string][]bool               // by topology key: see inhabitedDomains
	filters    map[[2]*podclass.Admission]bool // see AdmitsAll

	Away   map[awayTerm]awayVerdict // see judgeAwayTerms
	Unread []plan.UnreadPod         // see withUnread

	lone    []*podclass.Class       // by counter: see onlyCountedClass
	spreads []podclass.TopologyRule // by counter: see StrictestSpread
}

// Counter counts the pods of a group by domain of a key, on nodes that pass the filter.
type Counter struct {
	Key    string // topology key, canonical
	group  topology.PodSelector
	Filter *podclass.Admission // nil for all nodes

	limited bool // a required spread over hostnames counts it
	strict  bool // a required rule counts it
	Spread  bool // some spread counts it
	Avoided bool // some required anti-affinity over domains keeps away from it
}

// NewCounts counts nothing yet: ReadRules does.
func NewCounts(nodes *capacity.ExistingNodes, classes *podclass.Classes, as *podclass.Admissions,
	identities *podclass.IdentityCache) *Counts {
	return &Counts{s: nodes.S, Classes: classes, admissions: as, catalog: nodes.Catalog, nodes: nodes,
		spaces:     as.Namespaces,
		identities: identities, counterIDs: map[string]int{}, eligible: map[capacity.FilteredKey][]bool{},
		inhabited: map[string][]bool{}, Domains: map[string][]string{}, DomainIDs: map[string]map[string]int{}}
}

// findKeys lists the domains of every topology key that anything in the snapshot may ask for.
func (top *Counts) findKeys() {
	top.judgeAwayTerms()
	for key := range top.countedKeys() { // each key on its own, so the order does not matter
		sold := top.catalog.Sold.DomainsOf(key, top.catalog.Offerings)
		all := slices.Clone(sold)
		for _, node := range top.nodes.All {
			if v, ok := node.Labels()[key]; ok {
				if _, known := slices.BinarySearch(sold, v); !known {
					all = append(all, v)
				}
			}
		}
		if len(all) > len(sold) {
			slices.Sort(all)
			all = slices.Compact(all)
		}
		top.Domains[key] = all
		top.DomainIDs[key] = map[string]int{}
		for i, d := range top.Domains[key] {
			top.DomainIDs[key][d] = i
		}
	}
}

// countedKeys are the keys over which pods without a place spread, or are near to or apart from others, and those by
// which pods on nodes keep them away. Hosts are counted apart.
func (top *Counts) countedKeys() map[string]bool {
	keys := map[string]bool{}
	for _, class := range top.Classes.List {
		podclass.AddTopologyKeys(&class.Pod, keys)
	}
	for i := range top.s.Pods {
		p := &top.s.Pods[i]
		for _, t := range p.AntiAffinity {
			if p.NodeName != "" && top.Away[awayTermOf(p, t)].keeps {
				keys[podclass.CanonicalKey(t.Key)] = true
			}
		}
	}
	delete(keys, podclass.LabelHost)
	return keys
}

// counterIndex returns the index of the counter for the group.
func (top *Counts) counterIndex(key string, g topology.PodSelector, filter *podclass.Admission) int {
	id := key + "|" + g.ID()
	if filter != nil {
		id += "|" + filter.ID
	}
	i, ok := top.counterIDs[id]
	if !ok {
		i = len(top.Counters)
		top.counterIDs[id] = i
		top.Counters = append(top.Counters, Counter{Key: key, group: g, Filter: filter})
	}
	return i
}

// mayCount reports whether some node that passes the counter's filter may have pods of the class.
func (top *Counts) mayCount(class *podclass.Class, counter int) bool {
	filter, admit := top.Counters[counter].Filter, class.LastRelaxation().Admission
	return filter == nil || filter == admit ||
		slices.ContainsFunc(top.catalog.Offerings, func(o *capacity.Offering) bool {
			return o.FirstAlternative(filter) >= 0 && o.FirstAlternative(admit) >= 0
		}) ||
		slices.ContainsFunc(top.nodes.Hosts,
			func(b *capacity.Bin) bool { return b.AlternativeFor(filter) >= 0 && b.AlternativeFor(admit) >= 0 })
}

// CountsOn reports whether the counter counts pods on the bin, as far as its offering tells of a new one.
func (top *Counts) CountsOn(counter int, b *capacity.Bin) bool {
	filter := top.Counters[counter].Filter
	switch {
	case filter == nil:
		return true
	case b.Offering != nil:
		return b.Offering.FirstAlternative(filter) >= 0
	}
	return b.AlternativeFor(filter) >= 0
}

// countPod counts one pod that stays on the host: for the counters that select it, and for those of whom it keeps away.
func (top *Counts) countPod(on *capacity.Bin, matched, anti []int) {
	for _, i := range matched {
		c := top.Counters[i]
		if !top.CountsOn(i, on) {
			continue
		}
		if c.Key == podclass.LabelHost {
			top.Total[i]++
			if on.Count != nil {
				on.Count[i]++
			}
		} else if d, ok := top.DomainIDs[c.Key][on.DomainOf(c.Key)]; ok {
			top.Tally.Count[i][d]++
		}
	}
	for _, i := range anti {
		key := top.Counters[i].Key
		if key == podclass.LabelHost && on.Count != nil {
			on.Anti[i]++
		} else if d, ok := top.DomainIDs[key][on.DomainOf(key)]; ok {
			top.Tally.Anti[i][d]++
		}
	}
}

// hasRunningMatch reports whether a pod that the rule counts is there already.
func (top *Counts) hasRunningMatch(r podclass.TopologyRule) bool {
	if r.Key == podclass.LabelHost {
		return top.Total[r.Counter] > 0
	}
	return top.Tally.AnyCounted(r.Counter)
}

// hasPendingMatch reports whether any pod that waits is counted by the rule.
func (top *Counts) hasPendingMatch(r podclass.TopologyRule) bool {
	return slices.ContainsFunc(top.Classes.List,
		func(o *podclass.Class) bool { return slices.Contains(o.Matched, r.Counter) })
}

// MayLand are the domains in which a claim may end that has none yet.
func (top *Counts) MayLand(b *capacity.Bin, key string) []int {
	if b.Offering != nil || b.Exact {
		return nil
	}
	var out []int
	for d, name := range top.Domains[key] {
		if b.Known.Has(key, name) {
			out = append(out, d)
		}
	}
	return out
}

// DomainCounts holds numbers of pods, each by counter and by index of the domain in Counts.Domains.
type DomainCounts struct {
	Count [][]int // pods of the group in the domain
	May   [][]int // pods of the group on claims that have no domain yet and may end in this one
	Anti  [][]int // pods there, or on claims that may end there, with required anti-affinity against the group
	Even  [][]int // pods that this pass placed there and that have a required spread over the group
}

func newTally(top *Counts) DomainCounts {
	each := func() [][]int {
		out := make([][]int, len(top.Counters))
		for i, c := range top.Counters {
			out[i] = make([]int, len(top.Domains[c.Key]))
		}
		return out
	}
	return DomainCounts{each(), each(), each(), each()}
}

// Become takes over the counts of another.
func (t DomainCounts) Become(o DomainCounts) {
	for i := range t.Count {
		copy(t.Count[i], o.Count[i])
		copy(t.May[i], o.May[i])
		copy(t.Anti[i], o.Anti[i])
		copy(t.Even[i], o.Even[i])
	}
}

// Clone is a copy that may be changed.
func (t DomainCounts) Clone() DomainCounts {
	each := func(list [][]int) [][]int {
		out := make([][]int, len(list))
		for i, x := range list {
			out[i] = slices.Clone(x)
		}
		return out
	}
	return DomainCounts{each(t.Count), each(t.May), each(t.Anti), each(t.Even)}
}

// AnyCounted reports whether the counter has pods in some domain.
func (t DomainCounts) AnyCounted(counter int) bool {
	return isAnyCounted(t.Count[counter])
}

func isAnyCounted(byDomain []int) bool {
	return slices.ContainsFunc(byDomain, func(n int) bool { return n != 0 })
}
