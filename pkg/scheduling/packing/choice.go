package packing

import (
	"cmp"
	"math"
	"slices"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/topology"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// dedicatedUSD is the fee, in USD per hour, that EC2 asks in each region that has instances of dedicated tenancy. It is
// in no list of prices.
const dedicatedUSD = 2

// choiceOf returns what the domains of the key have for the batch.
func (dd *domainDivision) choiceOf(batch *PodBatch, key string, rules []podclass.TopologyRule) domainChoice {
	names := dd.top.Domains[key]
	c := domainChoice{key: key, rules: rules, open: make([]float64, len(names)), home: make([]int, len(names)),
		room: dd.roomIn(batch, key), most: make([]int, len(names)), slots: make([]int, len(names))}
	for d, name := range names {
		pins := append(slices.Clone(batch.Pins), podclass.DomainPin{Key: key, Domain: name})
		c.most[d] = math.MaxInt
		if c.open[d] = dd.pk.minPriceToReach(batch.View, pins); c.open[d] >= capacity.NoPrice {
			continue
		}
		c.home[d] = dd.a.W.Catalog.HomeIn(batch.View, pins)
		if key == instancetypes.LabelTenancy && name == instancetypes.TenancyDedicated {
			c.open[d] += dedicatedUSD
		}
		reserved, zonal := dd.pk.paidSlots(batch.View, pins)
		if reserved > 0 && dd.a.W.Catalog.MinPriceShare(batch.View, pins) >= capacity.NoPrice {
			c.most[d] = c.room[d] + reserved
		}
		if slots := reserved + zonal; slots > 0 && !dd.keepsOthersOut(batch.View, key, rules) {
			c.slots[d] = slots
		}
	}
	dd.priceNodes(batch, &c)
	return c
}

// keepsOthersOut reports whether anti-affinity over the key keeps pods of the view and those of another class out of
// each other's domains. Then the fewer domains the pods are in the more are left to the others.
func (dd *domainDivision) keepsOthersOut(pod *podclass.RelaxedPod, key string, rules []podclass.TopologyRule) bool {
	avoided := func(i int) bool { return dd.top.Counters[i].Key == key && dd.top.Counters[i].Avoided }
	return slices.ContainsFunc(dd.a.W.Classes.List, func(class *podclass.Class) bool {
		return class != pod.Class && slices.ContainsFunc(rules, func(r podclass.TopologyRule) bool {
			return r.Kind == podclass.Avoid && slices.Contains(class.Matched, r.Counter)
		})
	}) || slices.ContainsFunc(pod.Class.Matched, avoided)
}

// hasAffinity reports whether the rules of the key want the pods near others.
func (c domainChoice) hasAffinity() bool {
	return slices.ContainsFunc(c.rules, func(r podclass.TopologyRule) bool { return r.Kind == podclass.Follow })
}

// openCount is in how many domains the pods can be.
func (c domainChoice) openCount() (n int) {
	for _, price := range c.open {
		if price < capacity.NoPrice {
			n++
		}
	}
	return n
}

// roomIn returns by domain of the key how many pods of the batch its hosts could take, were they alone; more than there
// are do not count.
func (dd *domainDivision) roomIn(batch *PodBatch, key string) []int {
	out := make([]int, len(dd.top.Domains[key]))
	for _, b := range dd.a.Bins {
		if b.Offering != nil {
			continue
		}
		d, ok := dd.top.DomainIDs[key][b.DomainOf(key)]
		if !ok || out[d] >= batch.Left {
			continue
		}
		n := capacity.FitCount(batch.View.Class.Need, b.Room)
		if n == 0 || slices.ContainsFunc(batch.Pins,
			func(p podclass.DomainPin) bool { return b.DomainOf(p.Key) != p.Domain }) ||
			b.AlternativeFor(batch.View.Admission) < 0 {
			continue
		}
		out[d] = min(out[d]+min(n, dd.top.MaxPodsByHostRules(batch.View, dd.a.siteOf(b))), batch.Left)
	}
	return out
}

// chooseDomain returns the domain for one more pod of the view, -1 for none: the least crowded that the rules allow,
// among equals that of the heaviest pool, among those the cheapest. Pods that must be near each other stay where they
// are. For pods without rules of their own the pool's weight comes first.
func (dd *domainDivision) chooseDomain(pod *podclass.RelaxedPod, c domainChoice) int {
	best := -1
	var least domainScore
	gather := c.hasAffinity()
	var followers []*podclass.Class
	if gather {
		followers = dd.followers(pod, c)
	}
	for d, price := range c.open {
		p := classDomain{pod.Class.ID, c.key, dd.top.Domains[c.key][d]}
		most := dd.limitPods(p, c.most[d])
		if price >= capacity.NoPrice || most <= 0 || !dd.rulesAllowDomain(pod, c, d) {
			continue
		}
		s := domainScore{home: c.home[d], crowd: dd.podCount(pod, c, d), price: c.prices[d]}
		if gather {
			s.crowd, s.short, s.room = -s.crowd, dd.shortage(c, d, most, followers), -c.room[d]
		}
		switch {
		case c.room[d] > 0:
			s.home, s.price = -1, 0
		case c.room[d]+c.slots[d] > 0:
			s.price = 0
		}
		if len(c.rules) == 0 {
			s.first = s.home
		}
		if !gather {
			s.breaks = dd.brokenSpreads(pod, c, d)
		}
		if s.breaks > 0 {
			s.crowd, s.room = 0, -c.room[d]
		}
		s.scarce = d < len(c.scarce) && c.scarce[d]
		s.unwanted = !dd.wanted(pod, c, d)
		s.away = pod.Together && dd.given[p] == 0
		if best < 0 || s.lessThan(least) {
			best, least = d, s
		}
	}
	return best
}

// limitPods returns how many more pods of the class the domain takes, at most so many, after what was learned of it.
func (dd *domainDivision) limitPods(p classDomain, most int) int {
	if limit, ok := dd.pk.learned.caps[p]; ok {
		most = min(most, limit-dd.a.landed[p]-dd.given[p])
	}
	return most
}

// followers are the other classes whose pods must be near those of the view by the key. None are named where every
// domain takes as many as there are.
func (dd *domainDivision) followers(pod *podclass.RelaxedPod, c domainChoice) []*podclass.Class {
	if !slices.ContainsFunc(c.most, func(most int) bool { return most < math.MaxInt }) {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(dd.a.W.Classes.List), func(class *podclass.Class) bool {
		return class == pod.Class || !slices.ContainsFunc(dd.pk.currentRelaxation(class).DomainRules,
			func(r podclass.TopologyRule) bool {
				return r.Kind == podclass.Follow && r.Required && r.Key == c.key &&
					slices.Contains(pod.Class.Matched, r.Counter)
			})
	})
}

// shortage returns how many of the pods left and of those of their followers have no room in domain d, which takes so
// many of the pods. Either all of them are too many, or some could not be there in a solution before.
func (dd *domainDivision) shortage(c domainChoice, d, most int, followers []*podclass.Class) int {
	waiting, barred := c.left, 0
	for _, class := range followers {
		n := len(dd.a.Rest[class.ID])
		waiting += n
		p := classDomain{class.ID, c.key, dd.top.Domains[c.key][d]}
		if limit, ok := dd.pk.learned.caps[p]; ok {
			barred += max(0, n-max(0, limit-dd.a.landed[p]-dd.given[p]))
		}
	}
	return max(0, waiting-most, barred)
}

// wanted reports whether pods wait for one of the view to be in domain d, and none is, see wantFollowed.
func (dd *domainDivision) wanted(pod *podclass.RelaxedPod, c domainChoice, d int) bool {
	p := classDomain{pod.Class.ID, c.key, dd.top.Domains[c.key][d]}
	return dd.pk.learned.wanted[p] && dd.a.landed[p]+dd.given[p] == 0
}

// domainScore holds the reasons against a domain: the lowest wins.
type domainScore struct {
	away                            bool // from pods with which it must share a node
	unwanted                        bool // no pods wait for one to be there
	scarce                          bool // see scarceDomains
	breaks                          int  // see brokenSpreads
	first, crowd, short, room, home int
	price                           float64
}

func (s domainScore) lessThan(o domainScore) bool {
	if s.away != o.away {
		return o.away
	}
	if s.unwanted != o.unwanted {
		return o.unwanted
	}
	if s.scarce != o.scarce {
		return o.scarce
	}
	return cmp.Or(cmp.Compare(s.first, o.first), cmp.Compare(s.breaks, o.breaks), cmp.Compare(s.crowd, o.crowd),
		cmp.Compare(s.short, o.short), cmp.Compare(s.room, o.room), cmp.Compare(s.home, o.home),
		cmp.Compare(s.price, o.price)) < 0
}

// brokenSpreads is 2 if one more pod of the view in domain d would be more than the required spread of pods allows that
// are given that domain, 1 if there are too many already, and 0 if all is well.
func (dd *domainDivision) brokenSpreads(pod *podclass.RelaxedPod, c domainChoice, d int) int {
	worst := 0
	for _, i := range pod.Class.Matched {
		if dd.top.Counters[i].Key != c.key || dd.tally.Even[i][d] == 0 {
			continue
		}
		s := dd.top.EligibleDomains(dd.top.StrictestSpread(i))
		s.Self = true // it counts the view
		switch over := s.Over(dd.tally.Count[i], d, 1); {
		case over == 1:
			return 2
		case over > 1:
			worst = 1
		}
	}
	return worst
}

// podCount returns the number of pods in the domain that matter to the view: those its spreads and affinities count.
// Where there are none, those count that others' spreads count with it, unless it gathers.
func (dd *domainDivision) podCount(pod *podclass.RelaxedPod, c domainChoice, d int) int {
	n := 0
	for _, r := range c.rules {
		if r.Kind != podclass.Avoid {
			n += dd.tally.Count[r.Counter][d]
		}
	}
	if n > 0 || len(c.rules) > 0 || dd.pk.gathers(pod) {
		return n
	}
	for _, i := range pod.Class.Matched {
		if x := dd.top.Counters[i]; x.Key == c.key && x.Spread {
			n += dd.tally.Count[i][d]
		}
	}
	return n
}

// minPriceToReach is the lowest price at which a pod of the view gets to where the pins tie it, 0 where a host or
// reserved capacity has room.
func (pk *packing) minPriceToReach(pod *podclass.RelaxedPod, pins []podclass.DomainPin) float64 {
	adm := pk.a.W.Admissions.PinnedAdmission(pod.Admission, pins)
	if len(adm.Alternatives) == 0 {
		return capacity.NoPrice
	}
	if price := pk.a.W.Catalog.MinPriceShare(pod, pins); price < capacity.NoPrice && !pk.roomOnly {
		return price
	}
	for _, b := range pk.a.Bins {
		if b.Offering == nil && capacity.FitCount(pod.Class.Need, b.Room) > 0 && b.AlternativeFor(adm) >= 0 &&
			pk.a.W.Topology.MaxPodsByHostRules(pod, pk.a.siteOf(b)) > 0 {
			return 0
		}
	}
	if reserved, _ := pk.paidSlots(pod, pins); reserved > 0 {
		return 0
	}
	return capacity.NoPrice
}

// paidSlots returns how many pods of the view, were they alone, what is paid for could take where the pins tie them:
// capacity reservations, in nodes to make and in those that were made in them before, and Reserved Instances of one
// zone. What other commitments cover they cover in every domain.
func (pk *packing) paidSlots(pod *podclass.RelaxedPod, pins []podclass.DomainPin) (reserved, zonal int) {
	if pk.roomOnly || pod.Class.Stays {
		return 0, 0
	}
	slots := slotCount{packing: pk, pod: pod, each: math.MaxInt32,
		adm: pk.a.W.Admissions.PinnedAdmission(pod.Admission, pins)}
	if !pod.HasHostAffinity() {
		slots.each = pk.a.W.Topology.MaxPodsByHostRules(pod, podtopology.HostSite{Total: pk.a.Total})
	}
	reservations, commitments := map[string]int{}, map[string]int{}
	for _, p := range pk.a.W.Catalog.Pools {
		if p.MayBeOneType {
			for _, o := range p.Reserved {
				slots.add(reservations, o.Reservation.ID, o, pk.a.Used.spotAllowance(o, math.MaxInt32))
			}
		}
		if p.MinValues() {
			continue
		}
		for _, o := range p.Paid {
			if d, nodes := o.CoveringCommitment(pk.a.Used.slots); pk.isZonal(d.Commitment) {
				slots.add(commitments, d.Commitment, o, int(min(nodes, math.MaxInt32)))
			}
		}
	}
	for _, pods := range reservations { // the sum is the same in any order
		reserved += pods
	}
	for _, pods := range commitments {
		zonal += pods
	}
	return reserved + slots.inReserved(), zonal
}

// slotCount counts the pods of a view, were they alone, for which there is room that is paid for.
type slotCount struct {
	*packing
	pod  *podclass.RelaxedPod
	adm  *podclass.Admission
	each int // that may be on one node
}

// add counts pods on so many new nodes of the offering, which is paid for under the ID. Several pools may use the same.
func (c slotCount) add(byID map[string]int, id string, o *capacity.Offering, nodes int) {
	if nodes > 0 && o.FirstAlternative(c.adm) >= 0 &&
		!c.a.Used.ExceedsLimits(o.InstanceType.Pool, o.InstanceType.Type.Capacity) {
		byID[id] = max(byID[id], min(nodes*min(c.each, capacity.FitCount(c.pod.Class.Need, o.Room)), math.MaxInt32))
	}
}

// inReserved counts pods on the nodes that were made in reservations before.
func (c slotCount) inReserved() (n int) {
	for _, b := range c.a.Bins {
		if b.Offering != nil && b.Offering.Reservation != nil && b.Offering.FirstAlternative(c.adm) >= 0 {
			most := c.a.W.Topology.MaxPodsByHostRules(c.pod, c.a.siteOf(b))
			n += min(capacity.FitCount(c.pod.Class.Need, b.Room), most)
		}
	}
	return n
}

// isZonal reports whether the commitment covers nodes of one zone alone.
func (pk *packing) isZonal(commitment string) bool {
	return slices.ContainsFunc(pk.a.W.S.Catalog.Commitments, func(c instancetypes.Commitment) bool {
		return c.ID == commitment && c.Zone != ""
	})
}

// rulesAllowDomain reports whether every topology rule, own or others', allows one more pod in domain d.
func (dd *domainDivision) rulesAllowDomain(pod *podclass.RelaxedPod, c domainChoice, d int) bool {
	for _, i := range pod.Class.Matched {
		if dd.top.Counters[i].Key == c.key && dd.tally.Anti[i][d] > 0 {
			return false
		}
	}
	for _, r := range c.rules {
		count := dd.tally.Count[r.Counter]
		switch {
		case r.Kind == podclass.Spread && !dd.top.EligibleDomains(r).Admits(count, d),
			r.Kind == podclass.Avoid && count[d]+dd.tally.May[r.Counter][d] > 0,
			r.Kind == podclass.Follow && count[d] == 0 && !topology.AffinityAllows(0, dd.hasFollowed(pod, r), r.Self):
			return false
		}
	}
	return !slices.ContainsFunc(pod.HostRules, func(r podclass.TopologyRule) bool {
		return r.Kind == podclass.Follow && !r.Self &&
			!dd.affinityPodsInDomain(r, c, d)
	})
}

// affinityPodsInDomain reports whether pods that the rule wants on the same node are in domain d, as far as it is known
// where they go.
func (dd *domainDivision) affinityPodsInDomain(r podclass.TopologyRule, c domainChoice, d int) bool {
	name := dd.top.Domains[c.key][d]
	tied := false
	for _, class := range dd.a.W.Classes.List {
		if !slices.Contains(class.Matched, r.Counter) {
			continue
		}
		p := classDomain{class.ID, c.key, name}
		if dd.a.landed[p]+dd.given[p] > 0 {
			return true
		}
		tied = tied || slices.Contains(dd.top.KeysOf(dd.pk.currentRelaxation(class)), c.key)
	}
	for _, b := range dd.a.Bins {
		if b.Count[r.Counter] > 0 && b.DomainOf(c.key) == name {
			return true
		}
	}
	return !tied
}

// hasFollowed reports whether some pod counts for the affinity of the view, or, where it is required, for one over
// another key.
func (dd *domainDivision) hasFollowed(pod *podclass.RelaxedPod, r podclass.TopologyRule) bool {
	return dd.tally.AnyCounted(r.Counter) || slices.ContainsFunc(pod.DomainRules, func(o podclass.TopologyRule) bool {
		return r.Required && o.Required && o.Kind == podclass.Follow && dd.tally.AnyCounted(o.Counter)
	})
}
