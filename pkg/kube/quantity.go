package kube

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	quantity "k8s.io/apimachinery/pkg/api/resource"

	"joiner/pkg/resource"
)

// amounts translates quantities: cpu to millicores, everything else to whole units, parts rounded up.
func amounts(l corev1.ResourceList) resource.List {
	var out resource.List
	for _, name := range slices.Sorted(maps.Keys(l)) {
		q := l[name]
		if name == corev1.ResourceCPU {
			out.CPU = q.MilliValue()
			continue
		}
		out = out.With(string(name), q.Value())
	}
	return out
}

// quantities is the way back. Resources with an amount of zero are left out.
func quantities(l resource.List) corev1.ResourceList {
	out := corev1.ResourceList{}
	for _, name := range l.Names() {
		amount := l.Get(name)
		switch name {
		case resource.CPU:
			out[corev1.ResourceCPU] = *quantity.NewMilliQuantity(amount, quantity.DecimalSI)
		case resource.Memory, resource.Ephemeral:
			out[corev1.ResourceName(name)] = *quantity.NewQuantity(amount, quantity.BinarySI)
		default:
			out[corev1.ResourceName(name)] = *quantity.NewQuantity(amount, quantity.DecimalSI)
		}
	}
	return out
}
