package nodeclass

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/requirements"
)

// gib is a gibibyte in bytes.
const gib = int64(1) << 30

// DescribeClass says what of an EC2NodeClass changes how instance types look, as its status resolves it.
// MemoryOverhead, ReservedENIs and what reservations and subnets have room for do not come from the object; the caller
// fills them in.
func DescribeClass(n *awsv1.EC2NodeClass) instancetypes.Class {
	out := instancetypes.Class{
		Name:           n.Name,
		Message:        notReady(n),
		Hash:           n.Annotations[awsv1.AnnotationHash],
		HashVersion:    n.Annotations[awsv1.AnnotationHashVersion],
		Family:         n.ResolvedAMIFamily(),
		EphemeralBytes: ephemeralBytes(n),
		RAID0:          ptr.Deref(n.Spec.InstanceStorePolicy, "") == awsv1.InstanceStorePolicyRAID0,
		NitroOnly:      n.Spec.ConnectionTracking != nil,
		Prefixes:       ptr.Deref(n.Spec.IPPrefixCount, 0) > 0,
		Disks:          disksOf(n),
		PublicIPv4:     ptr.Deref(n.Spec.AssociatePublicIPAddress, false),
	}
	if o := n.Spec.CPUOptions; o != nil && o.NestedVirtualization != nil {
		out.NestedVirtualization = *o.NestedVirtualization == "enabled"
	}
	out.Ready = out.Message == ""
	out.LearnedMemoryMiB, out.Observed = memoryByType(n), shortfallsOf(n)
	out.Unseen = isStale(n)
	for _, s := range n.Status.Subnets {
		if out.ZoneIDs == nil {
			out.ZoneIDs = map[string]string{}
		}
		out.ZoneIDs[s.Zone] = s.ZoneID
		out.Subnets = append(out.Subnets, instancetypes.Subnet{ID: s.ID, Zone: s.Zone})
	}
	out.SecurityGroups = lists.Of(n.Status.SecurityGroups, func(g awsv1.SecurityGroup) string { return g.ID })
	slices.Sort(out.SecurityGroups)
	if g := n.Spec.PlacementGroupSelector; g != nil {
		out.Placement = &instancetypes.Placement{ID: g.ID, Name: g.Name}
	}
	out.Images = lists.Of(n.Status.AMIs, imageFrom)
	for _, v := range KubeletVersions(n.Status.AMIs) {
		if minor, err := minorOf(v); err == nil && (out.KubeletMinor == 0 || int64(minor) < out.KubeletMinor) {
			out.KubeletMinor = int64(minor)
		}
	}
	out.Reservations = lists.Of(n.Status.CapacityReservations, reservationFrom)
	slices.SortFunc(out.Reservations, func(a, b instancetypes.Reservation) int { return cmp.Compare(a.ID, b.ID) })
	for _, i := range n.Spec.NetworkInterfaces {
		if i != nil {
			out.Interfaces = append(out.Interfaces,
				instancetypes.Interface{Card: int64(i.NetworkCardIndex), Device: int64(i.DeviceIndex),
					EFAOnly: i.InterfaceType == awsv1.InterfaceTypeEFAOnly})
		}
	}
	if k := n.Spec.Kubelet; k != nil {
		addKubelet(&out, k)
	}
	return out
}

func addKubelet(out *instancetypes.Class, k *awsv1.KubeletConfiguration) {
	if k.MaxPods != nil {
		n := int64(*k.MaxPods)
		out.MaxPods = &n
	}
	out.MaxPodsExpression = k.MaxPodsExpression()
	out.PodsPerCore = int64(ptr.Deref(k.PodsPerCore, 0))
	out.KubeReserved, out.SystemReserved, out.EvictionHard = k.KubeReserved, k.SystemReserved, k.EvictionHard
}

// reservationFrom has no room: the status does not say how much is left, so that is the caller's to fill in.
func reservationFrom(r awsv1.CapacityReservation) instancetypes.Reservation {
	var ends time.Time
	if r.EndTime != nil {
		ends = r.EndTime.UTC()
	}
	return instancetypes.Reservation{
		ID: r.ID, Type: r.InstanceType, Zone: r.AvailabilityZone, Interruptible: r.Interruptible,
		Kind:     cmp.Or(string(r.ReservationType), string(awsv1.CapacityReservationTypeDefault)),
		Expiring: r.State == awsv1.CapacityReservationStateExpiring, Ends: ends,
	}
}

// imageFrom leaves out requirements that cannot be understood; the status is written by the refresh function, which
// knows them.
func imageFrom(a awsv1.AMI) instancetypes.Image {
	var rs []requirements.Requirement
	for _, e := range a.Requirements {
		if r, err := requirements.NewRequirement(e.Key, requirements.Operator(e.Operator), e.Values...); err == nil {
			rs = append(rs, r)
		}
	}
	return instancetypes.Image{ID: a.ID, Requirements: requirements.NewSet(rs...)}
}

// isStale reports whether refresh has not looked at the class as it is now.
func isStale(n *awsv1.EC2NodeClass) bool {
	ready, ok := n.StatusConditions().Get(awsv1.ConditionReady)
	return n.DeletionTimestamp == nil && (!ok || ready.ObservedGeneration != n.Generation)
}

// notReady says why nothing may be launched for the class now, or nothing.
func notReady(n *awsv1.EC2NodeClass) string {
	if n.DeletionTimestamp != nil {
		return "it is being deleted"
	}
	ready, ok := n.StatusConditions().Get(awsv1.ConditionReady)
	switch {
	case !ok:
		return "it has not been looked at yet"
	case ready.Status != metav1.ConditionTrue:
		return fmt.Sprintf("%s: %s", cmp.Or(ready.Reason, string(ready.Status)), ready.Message)
	case ready.ObservedGeneration != n.Generation:
		return "it was changed and has not been looked at again yet"
	}
	return ""
}

// ephemeralBytes is the size of the volume that the kubelet's directory lives on: the family's device for it, else the
// root volume. The root volume of Bottlerocket holds the system alone.
func ephemeralBytes(n *awsv1.EC2NodeClass) int64 {
	family := n.ResolvedAMIFamily()
	mappings := n.Spec.BlockDeviceMappings
	device, size := podVolume(family)
	root := int64(0)
	for _, m := range mappings {
		if m != nil && m.DeviceName != nil && *m.DeviceName == device && family != awsv1.AMIFamilyCustom {
			return cmp.Or(volumeBytes(m), size)
		}
		if m != nil && m.RootVolume && root == 0 && family != awsv1.AMIFamilyBottlerocket {
			root = volumeBytes(m)
		}
	}
	if family == awsv1.AMIFamilyCustom && len(mappings) > 0 {
		return cmp.Or(root, volumeBytes(mappings[len(mappings)-1]), size)
	}
	return cmp.Or(root, size)
}

// podVolume is the device that holds what pods write, and its size unless the class gives one.
func podVolume(family string) (device string, bytes int64) {
	switch family {
	case awsv1.AMIFamilyBottlerocket:
		return "/dev/xvdb", 20 * gib
	case awsv1.AMIFamilyWindows2019, awsv1.AMIFamilyWindows2022, awsv1.AMIFamilyWindows2025:
		return "/dev/sda1", 50 * gib
	}
	return "/dev/xvda", 20 * gib
}

// disksOf are the volumes that every node of the class gets: those of its block device mappings, else those of its
// image family.
func disksOf(n *awsv1.EC2NodeClass) []instancetypes.Disk {
	if len(n.Spec.BlockDeviceMappings) == 0 {
		return instancetypes.FamilyDisks(n.ResolvedAMIFamily())
	}
	var out []instancetypes.Disk
	for _, m := range n.Spec.BlockDeviceMappings {
		if m != nil && m.EBS != nil {
			out = append(out, instancetypes.Disk{Device: ptr.Deref(m.DeviceName, ""), GiB: m.EBS.SizeGiB(),
				Type: ptr.Deref(m.EBS.VolumeType, "gp2"), IOPS: ptr.Deref(m.EBS.IOPS, 0),
				MiBps: ptr.Deref(m.EBS.Throughput, 0)})
		}
	}
	return out
}

func volumeBytes(m *awsv1.BlockDeviceMapping) int64 {
	if m == nil || m.EBS == nil || m.EBS.VolumeSize == nil {
		return 0
	}
	return m.EBS.VolumeSize.Value()
}
