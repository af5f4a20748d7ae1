package overlays_test

import (
	"testing"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/overlays"
	"joiner.sh/pkg/model/resources"
)

// A type has as many devices of a DeviceClass as it has GPUs, if these count them; what it offerings itself stays.
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

// A type has as many bundles as its PCIe roots have devices for, where it has the devices that are known of it.
func TestTypesHaveBundles(t *testing.T) {
	const gpu, efa, name = "nvidia.com/gpu", "vpc.amazonaws.com/efa", "pcie-bundle.joiner.sh/x"
	for _, c := range []struct {
		typ              string
		has              [2]int64 // GPUs and EFA interfaces
		gpus, efas, want int64    // in a bundle
	}{
		{"p5.48xlarge", [2]int64{8, 32}, 1, 4, 8},
		{"p5.48xlarge", [2]int64{8, 32}, 1, 3, 8},
		{"p5.48xlarge", [2]int64{8, 32}, 1, 5, 0},
		{"p5.48xlarge", [2]int64{8, 32}, 2, 0, 0},
		{"p5.48xlarge", [2]int64{8, 32}, 0, 2, 16},
		{"p5.48xlarge", [2]int64{8, 31}, 1, 4, 0}, // its class gives it other interfaces
		{"p5.48xlarge", [2]int64{8, 31}, 1, 0, 8},
		{"p5.48xlarge", [2]int64{4, 32}, 1, 4, 0},
		{"p5en.48xlarge", [2]int64{8, 16}, 1, 4, 4},
		{"p5en.48xlarge", [2]int64{8, 16}, 2, 4, 4},
		{"p4d.24xlarge", [2]int64{8, 4}, 1, 1, 4},
		{"g6e.48xlarge", [2]int64{8, 4}, 1, 1, 0}, // no root has both
		{"g6e.48xlarge", [2]int64{8, 4}, 0, 2, 2},
		{"unheard.of", [2]int64{8, 32}, 1, 4, 0},
	} {
		types := []instancetypes.Type{{Name: c.typ, Capacity: resources.List{}.With(gpu, c.has[0]).With(efa, c.has[1])}}
		var classes []cluster.DeviceClass
		for by, n := range map[string]int64{gpu: c.gpus, efa: c.efas} {
			if n > 0 {
				classes = append(classes, cluster.DeviceClass{Resource: name, Name: by, CountedBy: by, PerRoot: n})
			}
		}
		s := cluster.Snapshot{Devices: cluster.Devices{Known: true, Classes: classes}}
		got := overlays.ByPool(s, func(string) []instancetypes.Type { return types })(cluster.Pool{})[0]
		if n := got.Capacity.Get(name); n != c.want || got.Allocatable.Get(name) != c.want {
			t.Errorf("%+v: it has %d", c, n)
		}
		s.Devices.Classes = append(s.Devices.Classes, cluster.DeviceClass{Resource: name, Name: "more", PerRoot: 1})
		if n := overlays.ByPool(s, func(string) []instancetypes.Type { return types })(cluster.Pool{})[0].Capacity.Get(name); n != 0 {
			t.Errorf("%+v: with devices that nobody counts it has %d", c, n)
		}
	}
}
