package instancetypes

// DriverEBS is the CSI driver of EBS volumes.
const DriverEBS = "ebs.csi.aws.com"

// What EC2 attaches to an instance, as it and the EBS CSI driver document it: 28 slots of a Nitro instance are for
// volumes, network interfaces and devices alike, the first interface has one. Newer types have more and for volumes
// alone, which EC2 tells when it is asked.
const (
	nitroVolumes = 27
	metalVolumes = 31
	xenVolumes   = 39
)

// ebsVolumes returns the number of EBS volumes that the CSI driver attaches to an instance that starts with so many
// network interfaces and volumes of its own. The driver counts both once, when it starts, and offers one at least.
func (f *Facts) ebsVolumes(interfaces, disks int64) int64 {
	most, shared := f.MaxEBSVolumes, f.SharedVolumeSlots
	switch {
	case f.Hypervisor == "xen": // EC2 calls these shared, though interfaces take none
		most, shared = xenVolumes, false
	case most == 0 && f.BareMetal:
		most, shared = metalVolumes, true
	case most == 0:
		most, shared = nitroVolumes-f.deviceSlots(), true
	}
	if shared {
		most -= max(interfaces, 1) - 1
	}
	return max(1, most-max(disks, 1))
}

// deviceSlots returns the number of slots that accelerators and the instance store take, as far as it is known without
// asking EC2: of the instance store one.
func (f *Facts) deviceSlots() (n int64) {
	n = min(f.LocalNVMeGB, 1)
	for _, list := range [][]Accelerator{f.GPUs, f.InferenceAccelerators, f.MediaAccelerators, f.FPGAs} {
		for _, a := range list {
			n += a.Count
		}
	}
	for _, d := range f.Neuron {
		n += d.Count
	}
	return n
}
