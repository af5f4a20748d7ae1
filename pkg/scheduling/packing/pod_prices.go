package packing

import (
	"joiner.sh/pkg/scheduling/cover"
	"joiner.sh/pkg/scheduling/podclass"
)

// PodPrices holds prices of pods by price class: the pods that the prices do not tell apart.
type PodPrices interface {
	// ClassOf returns the price class of those pods of the class that the pins tie.
	ClassOf(class *podclass.Class, pins []podclass.DomainPin) int32
	// PriceClasses are the classes, with the groups of which one node takes a few pods only.
	PriceClasses() (list []cover.Class, groupCaps []float64)
	// OfferingsForSale returns the number of offerings they reckon with that are not existing nodes.
	OfferingsForSale() int
	// ScaleUnits are the amounts by which resources are counted in prices.
	ScaleUnits() []float64
	// Values returns the worth of one pod of each class.
	Values() ClassValues
	// Reprice returns the worth of pods of which so many are left by class, while that part of the hosts is empty.
	Reprice(count []float64, hosts float64) ClassValues
}

// ClassValues holds the worth of pods, together with the classes that the numbers are for. A number is read by the pods
// that it is asked for, so numbers of other classes cannot be taken for it.
type ClassValues struct {
	Prices PodPrices // tell the price class of a pod
	USD    []float64 // by price class, USD per hour
}

// ofBatch returns the worth of one pod of the batch.
func (v ClassValues) ofBatch(batch *PodBatch) float64 {
	return v.USD[v.Prices.ClassOf(batch.View.Class, batch.Pins)]
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
