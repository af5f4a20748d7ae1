package binpack

import (
	"joiner.sh/pkg/scheduling/lowerbound"
	"joiner.sh/pkg/scheduling/podclass"
)

// priceSource has the prices by which nodes are filled and made. Who finds them, and how, is not known here.
type priceSource interface {
	// worthOf is what pods are worth for whose new nodes the solution looks.
	worthOf(a *solution) podPrices
	// guidePrices is what they are worth where all new nodes are chosen together; nil for what worthOf says.
	guidePrices() podPrices
}

// podPrices is what pods are worth by price class: the pods that the prices do not tell apart.
type podPrices interface {
	// classOf returns the price class of those pods of the class that the pins tie.
	classOf(k *podclass.Class, pins []podclass.DomainPin) int32
	// priceClasses are the classes, with the groups of which one node takes a few pods only.
	priceClasses() (list []lowerbound.PriceClass, groupCaps []float64)
	// rowCount is how many classes and limits there are to reckon with when pods are priced anew.
	rowCount() int
	// offersForSale is how many offers they reckon with that are no nodes that are there.
	offersForSale() int
	// scaleUnits are the amounts by which resources are counted in prices.
	scaleUnits() []float64
	// values is what one pod of each class is worth.
	values() classValues
	// reprice is what pods are worth of which so many are left by class, while that part of the hosts is empty.
	reprice(count []float64, hosts float64) classValues
}

// classValues is what pods are worth, together with the classes that the numbers are for: a number is read by the pods
// that it is asked for, so that numbers of other classes cannot be taken for it.
type classValues struct {
	prices podPrices
	usd    []float64 // by price class, USD per hour
}

// ofBatch is what one pod of the batch is worth.
func (v classValues) ofBatch(l *podBatch) float64 {
	return v.usd[v.prices.classOf(l.view.Class, l.pins)]
}

// podPricesFor is what pods are worth where new nodes are made for them.
func podPricesFor(a *solution) podPrices {
	if a.prices != nil {
		return a.prices
	}
	return a.strategy.prices.worthOf(a)
}

// scaleNeed is the amounts in these units.
func scaleNeed(amounts []int64, units []float64) []float64 {
	return appendScaled(make([]float64, 0, len(amounts)), amounts, units)
}

// appendScaled appends the amounts in these units.
func appendScaled(to []float64, amounts []int64, units []float64) []float64 {
	for i, x := range amounts {
		to = append(to, float64(x)/units[i])
	}
	return to
}
