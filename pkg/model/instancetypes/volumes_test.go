package instancetypes

import "testing"

func TestEBSVolumes(t *testing.T) {
	disk, gpu := int64(100), []Accelerator{{Count: 4}}
	for name, c := range map[string]struct {
		facts             Facts
		interfaces, disks int64
		want              int64
	}{
		"Nitro, not asked":                      {Facts{Hypervisor: "nitro"}, 0, 1, 26},
		"Bottlerocket has two disks":            {Facts{Hypervisor: "nitro"}, 0, 2, 25},
		"the image decides about disks":         {Facts{Hypervisor: "nitro"}, 0, 0, 26},
		"three interfaces of the class":         {Facts{Hypervisor: "nitro"}, 3, 1, 24},
		"instance store and GPUs, not asked":    {Facts{Hypervisor: "nitro", LocalNVMeGB: disk, GPUs: gpu}, 0, 1, 21},
		"Neuron devices, not asked":             {Facts{Hypervisor: "nitro", Neuron: []Neuron{{Count: 16}}}, 0, 1, 10},
		"bare metal, not asked":                 {Facts{BareMetal: true, LocalNVMeGB: disk}, 0, 1, 30},
		"Xen":                                   {Facts{Hypervisor: "xen"}, 0, 1, 38},
		"Xen, as EC2 tells it":                  {Facts{Hypervisor: "xen", MaxEBSVolumes: 40, SharedVolumeSlots: true}, 2, 1, 38},
		"shared slots":                          {Facts{Hypervisor: "nitro", MaxEBSVolumes: 25, SharedVolumeSlots: true, GPUs: gpu}, 2, 1, 23},
		"slots for volumes alone":               {Facts{Hypervisor: "nitro", MaxEBSVolumes: 32}, 4, 1, 31},
		"slots for volumes alone of bare metal": {Facts{BareMetal: true, MaxEBSVolumes: 79}, 1, 1, 78},
		"the driver offers one at least":        {Facts{Hypervisor: "nitro", MaxEBSVolumes: 3, SharedVolumeSlots: true}, 3, 2, 1},
	} {
		if got := c.facts.ebsVolumes(c.interfaces, c.disks); got != c.want {
			t.Errorf("%s: %d volumes, want %d", name, got, c.want)
		}
	}
}
