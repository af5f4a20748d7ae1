package translate

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"joiner.sh/pkg/model/resources"
)

// mostAmount is the largest amount that is told apart, in millicores, bytes or units: more than any node has of
// anything, and sums of it do not overflow.
const mostAmount = 1 << 52

// Amounts translates quantities: cpu to millicores, everything else to whole units, parts rounded up. What is
// beyond mostAmount either way counts as that much, where quantities themselves say nothing or less than nothing.
func Amounts(l corev1.ResourceList) resources.List {
	var out resources.List
	for _, name := range slices.Sorted(maps.Keys(l)) {
		q := l[name]
		scale := quantity.Scale(0)
		if name == corev1.ResourceCPU {
			scale = quantity.Milli
		}
		out = out.With(string(name), amountFrom(q, scale))
	}
	return out
}

func amountFrom(q quantity.Quantity, scale quantity.Scale) int64 {
	most := quantity.NewScaledQuantity(mostAmount, scale)
	if q.Cmp(*most) > 0 {
		return mostAmount
	}
	if most.Neg(); q.Cmp(*most) < 0 {
		return -mostAmount
	}
	return q.ScaledValue(scale)
}

// Quantities is the way back from Amounts. Resources with an amount of zero are left out.
func Quantities(l resources.List) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range l.Names() {
		amount := l.Get(name)
		switch name {
		case resources.CPU:
			out[corev1.ResourceCPU] = canonicalQuantity(quantity.NewMilliQuantity(amount, quantity.DecimalSI))
		case resources.Memory, resources.Ephemeral:
			out[corev1.ResourceName(name)] = canonicalQuantity(quantity.NewQuantity(amount, quantity.BinarySI))
		default:
			out[corev1.ResourceName(name)] = canonicalQuantity(quantity.NewQuantity(amount, quantity.DecimalSI))
		}
	}
	return out
}

// canonicalQuantity is the quantity in the form in which a client writes it that has read it. Bytes that are no
// multiple of 1024 are written without a suffix, and so are read as a decimal number, which has other suffixes. For the
// API server another form in a spec that must not change is a change.
func canonicalQuantity(q *quantity.Quantity) quantity.Quantity { return quantity.MustParse(q.String()) }
