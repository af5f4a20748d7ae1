package overlays

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// withDevices gives each type as many of a resource that a DeviceClass serves as it has of the one that counts its
// devices, unless the type offerings that resource anyway.
func withDevices(d cluster.Devices, types func(class string) []instancetypes.Type) func(
	class string) []instancetypes.Type {
	counted := slices.ContainsFunc(d.Classes, func(c cluster.DeviceClass) bool { return c.CountedBy != "" })
	if !counted {
		return types
	}
	bundles := d.Bundles()
	return func(class string) []instancetypes.Type {
		out := slices.Clone(types(class))
		for i := range out {
			t := &out[i]
			for _, c := range d.Classes {
				n := t.Capacity.Get(c.CountedBy)
				if strings.HasPrefix(c.Resource, cluster.Whole) {
					n = cluster.WholeOf(n)
				}
				if c.PerRoot == 0 {
					give(t, c.Resource, n)
				}
			}
			for _, parts := range bundles {
				give(t, parts[0].Resource, bundlesOf(*t, parts))
			}
		}
		return out
	}
}

// give adds so many of a resource to a type that has none of it.
func give(t *instancetypes.Type, resource string, n int64) {
	if n > 0 && t.Capacity.Get(resource) == 0 {
		t.Capacity, t.Allocatable = t.Capacity.With(resource, n), t.Allocatable.With(resource, n)
	}
}

// bundlesOf returns how many times nodes of the type have the devices of all parts on one PCIe root. That many pods
// find theirs, whichever of the devices the scheduler gives to whom.
func bundlesOf(t instancetypes.Type, parts []cluster.DeviceClass) (n int64) {
	roots := instancetypes.PCIeRoots(t.Name)
	for _, of := range []string{instancetypes.ResourceNVIDIA, instancetypes.ResourceEFA} {
		var all int64
		for _, r := range roots {
			all += r[of]
		}
		asked := slices.ContainsFunc(parts, func(c cluster.DeviceClass) bool { return c.CountedBy == of })
		if asked && all != t.Capacity.Get(of) {
			return 0 // its EC2NodeClass gives it other interfaces, or EC2 knows better: where they are nobody knows
		}
	}
	for _, r := range roots {
		n += cluster.BundlesOnRoot(parts, func(c cluster.DeviceClass) int64 { return r[c.CountedBy] })
	}
	return n
}
