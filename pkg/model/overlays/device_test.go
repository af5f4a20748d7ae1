package overlays_test

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/resources"
)

// A type has as many devices of a DeviceClass as it has GPUs, if these count them; what it offers itself stays.
func TestTypesHaveDevices(t *testing.T) {
	const gpu, claimed, other = "nvidia.com/gpu", "deviceclass.resource.kubernetes.io/gpu.nvidia.com", "deviceclass.resource.kubernetes.io/h100"
	has := func(l resources.List) instancetypes.Type { return instancetypes.Type{Capacity: l, Allocatable: l} }
	const whole = "all-devices.joiner.sh/gpu.nvidia.com"
	types := []instancetypes.Type{has(resources.List{CPU: 4000}), has(resources.List{CPU: 8000}.With(gpu, 8)), has(resources.List{}.With(gpu, 8).With(claimed, 3)), has(resources.List{}.With(gpu, 33))}
	s := cluster.Snapshot{Devices: cluster.Devices{Known: true, Classes: []cluster.DeviceClass{
		{Resource: claimed, Name: "gpu.nvidia.com", CountedBy: gpu}, {Resource: whole, Name: "gpu.nvidia.com", CountedBy: gpu}, {Resource: other, Name: "h100"}}}}
	got := overlays.ByPool(s, func(string) []instancetypes.Type { return types })(cluster.Pool{})
	for i, want := range []int64{0, 8, 3, 33} {
		if units := []int64{0, 1000, 1000, 0}[i]; got[i].Allocatable.Get(whole) != units {
			t.Errorf("type %d has %d units of all devices, want %d: a claim has 32 devices at most", i, got[i].Allocatable.Get(whole), units)
		}
		if c, a := got[i].Capacity.Get(claimed), got[i].Allocatable.Get(claimed); c != want || a != want {
			t.Errorf("type %d has %d devices, allocatable %d; want %d", i, c, a, want)
		}
		if got[i].Capacity.Get(other) != 0 {
			t.Errorf("type %d has devices that nobody can count", i)
		}
		if i < 2 && types[i].Capacity.Get(claimed) != 0 {
			t.Error("the types given were changed")
		}
	}
}
