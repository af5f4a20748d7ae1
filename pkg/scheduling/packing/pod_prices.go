package packing

import (
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
)

// rounding is the part of a price or of a share below which it is taken for the rounding of its sum. leastDivisor keeps
// quotients finite.
const rounding, leastDivisor = 1e-9, 1e-12

// priceSource has the prices by which nodes are filled and made. Who finds them, and how, is not known here.
type priceSource interface {
	// WorthOf is what pods are worth for whose new nodes the solution looks.
	WorthOf(a *Solution) PodPrices
	// GuidePrices is what they are worth where all new nodes are chosen together; nil for what WorthOf says.
	GuidePrices() PodPrices
}

// PodPrices is what pods are worth by price class: the pods that the prices do not tell apart.
type PodPrices interface {
	// ClassOf returns the price class of those pods of the class that the pins tie.
	ClassOf(k *podclass.Class, pins []podclass.DomainPin) int32
	// PriceClasses are the classes, with the groups of which one node takes a few pods only.
	PriceClasses() (list []lowerbound.PriceClass, groupCaps []float64)
	// HasManyClasses reports whether there are so many classes that pricing them anew takes its time.
	HasManyClasses() bool
	// OfferingsForSale is how many offerings they reckon with that are no nodes that are there.
	OfferingsForSale() int
	// ScaleUnits are the amounts by which resources are counted in prices.
	ScaleUnits() []float64
	// Values is what one pod of each class is worth.
	Values() ClassValues
	// Reprice is what pods are worth of which so many are left by class, while that part of the hosts is empty.
	Reprice(count []float64, hosts float64) ClassValues
}

// ClassValues is what pods are worth, together with the classes that the numbers are for: a number is read by the pods
// that it is asked for, so that numbers of other classes cannot be taken for it.
type ClassValues struct {
	Prices PodPrices
	USD    []float64 // by price class, USD per hour
}

// ofBatch is what one pod of the batch is worth.
func (v ClassValues) ofBatch(l *PodBatch) float64 {
	return v.USD[v.Prices.ClassOf(l.View.Class, l.Pins)]
}

// podPricesFor is what pods are worth where new nodes are made for them.
func podPricesFor(a *Solution) PodPrices {
	if a.Prices != nil {
		return a.Prices
	}
	return a.Strategy.Prices.WorthOf(a)
}

// ScaleNeed is the amounts in these units.
func ScaleNeed(amounts []int64, units []float64) []float64 {
	return appendScaled(make([]float64, 0, len(amounts)), amounts, units)
}

// appendScaled appends the amounts in these units.
func appendScaled(to []float64, amounts []int64, units []float64) []float64 {
	for i, x := range amounts {
		to = append(to, float64(x)/units[i])
	}
	return to
}
