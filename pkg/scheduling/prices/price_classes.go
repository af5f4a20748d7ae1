package prices

import (
	"slices"

	"joiner.sh/pkg/scheduling/capacity"
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/packing"
	"joiner.sh/pkg/scheduling/podclass"
	"joiner.sh/pkg/scheduling/podtopology"
)

// ShadowPrices holds the worth of pods: the least that one of each pod class adds to the price of any fleet. A pod
// class that must spread over zones has a price in each of them.
type ShadowPrices struct {
	members []classMembership
	Classes []priceClass  // by price class, as in Problem.Classes
	Problem cover.Problem // pods and offerings that Prices are for; hosts too where asked for
	solver  *lowerbound.Solver
	Prices  lowerbound.ClassPrices             // by price class, of one pod, USD per hour
	Fill    map[*capacity.InstanceType]float64 // about the most worth that a node of the model can hold
	Units   []float64                          // by dimension: the amount that is 1 in Problem, such as a core or a GiB

	repriced map[string][]float64 // see reprice
}

// priceClass holds the need and the admission that the pods of one price class share.
type priceClass struct {
	need  []int64
	admit *podclass.Admission
}

// classMembership holds the price classes to which the pods of a class belong.
type classMembership struct {
	podtopology.EvenSplit
	class int32   // where no rule ties them to a domain
	tied  []int32 // by domain: the class
}

// PriceClasses are the classes of the prices, with the groups of which one node takes a few pods only.
func (p *ShadowPrices) PriceClasses() (list []cover.Class, groupCaps []float64) {
	return p.Problem.Classes, p.Problem.Caps
}

// ScaleUnits are the amounts by which resources are counted.
func (p *ShadowPrices) ScaleUnits() []float64 { return p.Units }

// Values returns the worth of pods by the prices.
func (p *ShadowPrices) Values() packing.ClassValues {
	return packing.ClassValues{Prices: p, USD: p.Prices.Value}
}

// ClassOf returns the price class of those pods of the class that the pins tie.
func (p *ShadowPrices) ClassOf(class *podclass.Class, pins []podclass.DomainPin) int32 {
	m := p.members[class.ID]
	if m.Key == "" {
		return m.class
	}
	for _, y := range pins {
		if i := slices.Index(m.Domains, y.Domain); y.Key == m.Key && i >= 0 {
			return m.tied[i]
		}
	}
	return m.tied[0]
}

// LowestPrice returns the worth of a pod of the class in the domain where that is least.
func (p *ShadowPrices) LowestPrice(class *podclass.Class) float64 {
	m := p.members[class.ID]
	if m.Key == "" {
		return p.Prices.Value[m.class]
	}
	usd := capacity.NoPrice
	for _, c := range m.tied {
		usd = min(usd, p.Prices.Value[c])
	}
	return usd
}

// leastInDomain returns the least number of n placed pods in any domain: the fullest domains hold the skew more than
// the emptiest.
func (m classMembership) leastInDomain(n int) int {
	domains := len(m.Domains)
	return max(0, (n-(domains-1)*m.Skew+domains-1)/domains)
}

// addMinimumCounts adds to counts how many pods of which price class n placed pods of a class are at least, whatever
// plan places them, and returns how many are left that may be anywhere, and what one of those is worth, on an average
// where that is least.
func (m classMembership) addMinimumCounts(n int, value []float64, counts []float64) (loose int, each float64) {
	if m.Key == "" {
		counts[m.class] += float64(n)
		return 0, 0
	}
	domains, low := len(m.Domains), m.leastInDomain(n)
	var values []float64
	sum := 0.0
	for _, c := range m.tied {
		counts[c] += float64(low)
		values = append(values, value[c])
		sum += value[c]
	}
	loose = n - low*domains
	slices.Sort(values)
	least := float64(loose) * values[0]
	for emptiest := low; emptiest <= n/domains; emptiest++ { // the cheapest domains are the fullest
		cost, left := float64(emptiest-low)*sum, n-emptiest*domains
		for _, v := range values {
			here := min(left, m.Skew)
			cost += float64(here) * v
			left -= here
		}
		if left == 0 && (emptiest == low || cost < least) {
			least = cost
		}
	}
	if loose > 0 {
		each = least / float64(loose)
	}
	return loose, each
}

// OfferingsForSale returns the number of offerings of the problem that are not existing nodes.
func (p *ShadowPrices) OfferingsForSale() (n int) {
	for i := range p.Problem.Offerings {
		if p.Problem.Offerings[i].Limit == 0 {
			n++
		}
	}
	return n
}
