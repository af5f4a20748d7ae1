package launch

import (
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
)

// blockDevices are the volumes: the class's, else those of the image family.
func blockDevices(c *awsv1.EC2NodeClass) []BlockDevice {
	if len(c.Spec.BlockDeviceMappings) == 0 {
		return familyDevices(c.ResolvedAMIFamily())
	}
	var out []BlockDevice
	for _, m := range c.Spec.BlockDeviceMappings {
		if m != nil && m.EBS != nil {
			out = append(out, blockDevice(m))
		}
	}
	return out
}

func blockDevice(m *awsv1.BlockDeviceMapping) BlockDevice {
	e := m.EBS
	return BlockDevice{
		SizeGiB: int32(e.SizeGiB()),
		Device:  ptr.Deref(m.DeviceName, ""), VolumeType: ptr.Deref(e.VolumeType, ""), KMSKeyID: ptr.Deref(e.KMSKeyID, ""),
		SnapshotID: ptr.Deref(e.SnapshotID, ""),
		IOPS:       int32(ptr.Deref(e.IOPS, 0)), Throughput: int32(ptr.Deref(e.Throughput, 0)),
		VolumeInitializationRate: ptr.Deref(e.VolumeInitializationRate, 0),
		Encrypted:                e.Encrypted, DeleteOnTermination: e.DeleteOnTermination,
	}
}

// familyDevices are the encrypted volumes of the image family.
func familyDevices(family string) []BlockDevice {
	var out []BlockDevice
	for _, d := range instancetypes.FamilyDisks(family) {
		yes := true
		out = append(out, BlockDevice{Device: d.Device, SizeGiB: int32(d.GiB), VolumeType: d.Type, Encrypted: &yes})
	}
	return out
}

// networkInterfaces returns the interfaces of the class, else those for EFA, else one.
func networkInterfaces(in Input, efa []instancetypes.NetworkDevice) []NetworkInterface {
	whole := wholeInterface(in)
	var out []NetworkInterface
	switch {
	case len(in.Class.Spec.NetworkInterfaces) > 0:
		for _, s := range in.Class.Spec.NetworkInterfaces {
			if s == nil {
				continue
			}
			n := whole
			if s.InterfaceType == awsv1.InterfaceTypeEFAOnly { // has no address
				n = NetworkInterface{SecurityGroupIDs: whole.SecurityGroupIDs}
			}
			n.CardIndex, n.DeviceIndex, n.Type = s.NetworkCardIndex, s.DeviceIndex, string(s.InterfaceType)
			out = append(out, n)
		}
	case len(efa) > 0:
		for _, d := range efa {
			n := whole
			n.CardIndex, n.DeviceIndex = d.Card, d.Device
			if d.EFA {
				n.Type = "efa"
			}
			out = append(out, n)
		}
	default:
		out = []NetworkInterface{whole}
	}
	return out
}

// wholeInterface is an interface with everything that one with addresses gets.
func wholeInterface(in Input) NetworkInterface {
	spec := in.Class.Spec
	n := NetworkInterface{AssociatePublicIP: spec.AssociatePublicIPAddress,
		SecurityGroupIDs: lists.Of(in.Class.Status.SecurityGroups, func(g awsv1.SecurityGroup) string { return g.ID })}
	if usesIPv6(in) {
		// EC2 gives an address or prefixes; a node cannot join without its address, and the VPC CNI brings prefixes
		n.PrimaryIPv6, n.IPv6AddressCount = true, 1
	} else {
		n.IPv4PrefixCount = ptr.Deref(spec.IPPrefixCount, 0)
	}
	if t := spec.ConnectionTracking; t != nil {
		n.ConnectionTracking = &ConnectionTracking{
			TCPEstablishedSec: ptr.Deref(t.TCPEstablishedTimeout, 0), UDPStreamSec: ptr.Deref(t.UDPStreamTimeout, 0),
			UDPSec: ptr.Deref(t.UDPTimeout, 0),
		}
	}
	return n
}

// hasEFA reports whether instances of the template get EFA interfaces.
func (t Template) hasEFA() bool {
	return slices.ContainsFunc(t.NetworkInterfaces,
		func(n NetworkInterface) bool { return strings.HasPrefix(n.Type, "efa") })
}
