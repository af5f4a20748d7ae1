package overlays

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
)

// withDevices gives each type as many of a resource that a DeviceClass serves as it has of the one that counts its
// devices, unless the type offers that resource anyway.
func withDevices(d cluster.Devices, types func(class string) []instancetypes.Type) func(
	class string) []instancetypes.Type {
	counted := slices.ContainsFunc(d.Classes, func(c cluster.DeviceClass) bool { return c.CountedBy != "" })
	if !counted {
		return types
	}
	return func(class string) []instancetypes.Type {
		out := slices.Clone(types(class))
		for i := range out {
			t := &out[i]
			for _, c := range d.Classes {
				n := t.Capacity.Get(c.CountedBy)
				if strings.HasPrefix(c.Resource, cluster.Whole) {
					n = cluster.WholeOf(n)
				}
				if n > 0 && t.Capacity.Get(c.Resource) == 0 {
					t.Capacity, t.Allocatable = t.Capacity.With(c.Resource, n), t.Allocatable.With(c.Resource, n)
				}
			}
		}
		return out
	}
}
