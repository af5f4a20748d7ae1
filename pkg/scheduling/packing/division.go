package packing

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// divideIntoBatches turns the waiting pods of the classes into batches and ties those to a domain that take part in a
// topology rule. Each pod goes where the rules allow one more, counting everything divided so far, so that what comes
// out keeps every rule when all of it is placed.
func (pk *packing) divideIntoBatches(now []*podclass.Class) []*PodBatch {
	clear(pk.stuck)
	for _, class := range now {
		clear(pk.a.Blocked[class.ID])
	}
	dd := &domainDivision{a: pk.a, pk: pk, top: pk.a.W.Topology, tally: pk.a.Tally.Clone(),
		given: map[classDomain]int{}}
	out := dd.divideClasses(now)
	for i, batch := range out {
		batch.ID = i
		batch.Admit = pk.a.W.Admissions.PinnedAdmission(batch.View.Admission, batch.Pins)
		batch.whole = slices.ContainsFunc(batch.View.HostRules,
			func(r podclass.TopologyRule) bool {
				return r.Kind == podclass.Follow && r.Self && pk.a.Total[r.Counter] == 0
			})
	}
	return out
}

// divideClasses divides all of the classes' pods that find a domain, in the order of their ranks; those that follow
// others once these have one.
func (dd *domainDivision) divideClasses(now []*podclass.Class) []*PodBatch {
	sorted := dd.inOrderOfDivision(now)
	var splits []*podSplit
	for again := true; again; {
		again = false
		var waiting []*podclass.Class
		for _, class := range sorted {
			s := dd.divideClass(class)
			if len(s.all.batches(s.view)) == 0 && placementRank(s.view) == rankFollow {
				waiting = append(waiting, class) // what it follows may still come
				dd.a.Blocked[class.ID][s.why] = true
				continue
			}
			splits = append(splits, s)
			if s.left > 0 {
				dd.held = append(dd.held, s)
			}
			again = true
		}
		again = again && len(waiting) > 0
		sorted = waiting
	}
	var out []*PodBatch
	for _, s := range splits {
		if s.left > 0 {
			dd.a.Blocked[s.view.Class.ID][s.why] = true
		}
		out = append(out, s.all.batches(s.view)...)
	}
	slices.SortStableFunc(out, func(x, y *PodBatch) int {
		return cmp.Or(cmp.Compare(x.View.Class.ID, y.View.Class.ID), slices.CompareFunc(x.Pins, y.Pins, comparePins))
	})
	return out
}

// inOrderOfDivision sorts the classes by their ranks, among equals those first that can be in the fewest domains.
func (dd *domainDivision) inOrderOfDivision(now []*podclass.Class) []*podclass.Class {
	type turn struct{ rank, domains int }
	turns := make(map[*podclass.Class]turn, len(now))
	for _, class := range now {
		turns[class] = turn{dd.divisionRank(class), dd.fewestDomains(class)}
	}
	sorted := slices.Clone(now)
	slices.SortStableFunc(sorted, func(x, y *podclass.Class) int {
		return cmp.Or(cmp.Compare(turns[x].rank, turns[y].rank), cmp.Compare(turns[x].domains, turns[y].domains),
			cmp.Compare(x.ID, y.ID))
	})
	return sorted
}

// Ranks of classes, in the order in which they are divided over domains: those that others must keep away from or
// gather around come first.
const (
	rankApart  = iota // apart from others
	rankSpread        // evenly
	rankFree          // without a rule
	rankGather        // near each other
	rankFollow        // near others
)

// placementRank returns the turn at which pods of the view are divided over domains.
func placementRank(pod *podclass.RelaxedPod) int {
	rank := rankFree
	for _, r := range pod.DomainRules {
		switch {
		case r.Kind == podclass.Follow && r.Self:
			rank = max(rank, rankGather)
		case r.Kind == podclass.Follow:
			rank = max(rank, rankFollow)
		}
	}
	for _, r := range pod.HostRules {
		if r.Kind == podclass.Follow && !r.Self {
			rank = rankFollow // it goes where they go
		}
	}
	if rank > rankFree {
		return rank
	}
	for _, r := range pod.DomainRules {
		if r.Kind == podclass.Avoid {
			return rankApart
		}
		rank = rankSpread
	}
	return rank
}

// divisionRank returns the turn at which the class is divided, by its rank. Pods without a choice come before those
// that spread among them or keep away from them, and have one.
func (dd *domainDivision) divisionRank(class *podclass.Class) int {
	pod := dd.pk.currentRelaxation(class)
	if len(pod.DomainRules) > 0 {
		if slices.ContainsFunc(pod.DomainRules,
			func(r podclass.TopologyRule) bool { return pod.Admission.HasSingleValue(r.Key) }) {
			return 2*placementRank(pod) - 1
		}
		return 2 * placementRank(pod)
	}
	tied := func(by func(podtopology.Counter) bool) bool {
		return slices.ContainsFunc(class.Matched, func(c int) bool {
			return by(dd.top.Counters[c]) &&
				pod.Admission.HasSingleValue(dd.top.Counters[c].Key)
		})
	}
	switch {
	case tied(func(c podtopology.Counter) bool { return c.Avoided }):
		return 2*rankApart - 1
	case tied(func(c podtopology.Counter) bool { return c.Spread }):
		return 2*rankSpread - 1
	}
	return 2 * placementRank(pod)
}

// fewestDomains returns the number of domains in which the class can be, of the key of its rules that leaves it fewest.
func (dd *domainDivision) fewestDomains(class *podclass.Class) int {
	pod := dd.pk.currentRelaxation(class)
	least := math.MaxInt
	for _, key := range dd.top.KeysOf(pod) {
		n := 0
		for _, d := range dd.top.Domains[key] {
			if pod.Admission.LeavesDomainOpen(key, d) {
				n++
			}
		}
		least = min(least, n)
	}
	return least
}

func comparePins(x, y podclass.DomainPin) int {
	return cmp.Or(strings.Compare(x.Key, y.Key), strings.Compare(x.Domain, y.Domain))
}

// divideClass divides the waiting pods of the class that find a domain.
func (dd *domainDivision) divideClass(class *podclass.Class) *podSplit {
	left := len(dd.a.Rest[class.ID])
	if most, ok := dd.pk.learned.caps[classDomain{Class: class.ID}]; ok {
		left = min(left, max(0, most-len(class.Pods)+left))
	}
	return dd.splitByDomains(dd.pk.currentRelaxation(class), left)
}

// resumeHeld gives domains to pods whose spread lets them go on, once it counts more pods of the class.
func (dd *domainDivision) resumeHeld(class *podclass.Class) {
	for more := []*podclass.Class{class}; len(more) > 0; more = more[1:] {
		for _, s := range dd.held {
			if s.left > 0 && s.spreadCounts(more[0]) && s.giveNext() {
				more = append(more, s.view.Class)
			}
		}
	}
}

// dearNodes is how many times as much whole nodes for the pods of a batch may cost in a domain as in the cheapest, so
// that domains still compare by a pod's share of a node, on the rest of which other pods may come. Twelve workloads of
// infra/lab/ablation cost the same with it, with double and with no bound. With half, at which any difference counts,
// four cost up to 1.7 % more and three up to 0.8 % less. Double lets a pod pay four times its node.
const dearNodes = 2

// priceNodes sets the prices by which the domains compare. Where the domain decides the type of its nodes, or sells
// only types that are dear for so few pods, that is the price of whole nodes for the pods that come there: a share of a
// large node is cheap, but the rest may stay empty. Elsewhere it is the price of a pod's share.
func (dd *domainDivision) priceNodes(batch *PodBatch, c *domainChoice) {
	c.prices = c.open
	domains := c.openCount()
	if batch.Left == 0 || domains < 2 || c.key == instancetypes.LabelTenancy {
		return
	}
	pods := batch.Left
	if !c.hasAffinity() {
		pods = (batch.Left-1)/domains + 1
	}
	byDomain := dd.a.W.Catalog.NodePrices(batch.View, batch.Pins, c.key, pods)
	least := capacity.NoPrice
	for _, price := range byDomain { // the least is the same in any order
		least = min(least, price)
	}
	c.prices = slices.Clone(c.open)
	for d, name := range dd.top.Domains[c.key] {
		if price, ok := byDomain[name]; ok && (isDecidedByType(c.key) || price > dearNodes*least) {
			c.prices[d] = price
		}
	}
}

// isDecidedByType reports whether the instance type alone decides the label's value.
func isDecidedByType(key string) bool {
	return key == instancetypes.LabelType || key == instancetypes.LabelArch ||
		strings.HasPrefix(key, instancetypes.LabelPrefix)
}

// whyDivided explains why no domain of the key takes one more pod of the view.
func (dd *domainDivision) whyDivided(pod *podclass.RelaxedPod, c domainChoice) string {
	var can []string
	for d, name := range dd.top.Domains[c.key] {
		if c.open[d] < capacity.NoPrice {
			can = append(can, name)
		}
	}
	var words []string
	for _, r := range c.rules {
		switch r.Kind {
		case podclass.Spread:
			words = append(words, fmt.Sprintf("spread with maxSkew %d", r.MaxSkew))
		case podclass.Avoid:
			words = append(words, "pod anti-affinity")
		case podclass.Follow:
			words = append(words, "pod affinity")
			if !dd.tally.AnyCounted(r.Counter) && !r.Self {
				return "pod affinity over " + c.key +
					": none of the pods that it has to be near runs or has found a place"
			}
		}
	}
	where := "no value of it has room for the pod"
	if len(can) > 0 {
		where = "nodes for it could be made or found only in " + strings.Join(can, ", ")
	}
	keepsAway := func(i int) bool {
		return dd.top.Counters[i].Key == c.key &&
			slices.ContainsFunc(dd.tally.Anti[i], func(n int) bool { return n > 0 })
	}
	switch {
	case len(words) > 0:
	case slices.ContainsFunc(pod.Class.Matched, keepsAway):
		words = append(words, "anti-affinity of other pods")
	case len(can) > 0:
		return fmt.Sprintf("%s: %s, and none took it beside the others", c.key, where)
	default:
		return fmt.Sprintf("%s: %s", c.key, where)
	}
	return fmt.Sprintf("%s over %s allows no more pods: %s", strings.Join(words, " and "), c.key, where)
}
