package launch

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/utils/ptr"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/nomination"
	"joiner.sh/pkg/nodeclaim/bootstrap"
)

const (
	// hashLength makes the longest template name 128 characters, which is what EC2 takes, for a cluster name of 100.
	hashLength      = 20
	resourceEnclave = "eks.amazonaws.com/nip-slots"
)

// templateGroup holds the parts of an instance type that go into a template.
type templateGroup struct {
	image    string
	maxPods  int64
	reserved instancetypes.KubeletReserved
	efas     string // the network devices in words, empty unless the claim asks for EFA

	reservation instancetypes.Reservation // that it is launched into; its ID is empty for none
}

// groupOf is the group of the type, and its network devices where the claim asks for EFA.
func groupOf(in Input, t *instancetypes.Type, o instancetypes.Offering) (templateGroup, []instancetypes.NetworkDevice) {
	var devices []instancetypes.NetworkDevice
	g := templateGroup{image: t.ImageID, maxPods: t.MaxPods, reserved: t.Reserved}
	if r := o.Reservation; r != nil {
		g.reservation = instancetypes.Reservation{ID: r.ID, Kind: r.Kind, Interruptible: r.Interruptible}
	}
	drivers := strings.Split(in.Claim.Annotations[v1.AnnotationRequestedDRADrivers], ",")
	efa := in.Claim.Requests.Get(instancetypes.ResourceEFA) > 0 || slices.Contains(drivers, awsv1.DriverDRANET)
	if efa && len(in.Class.Spec.NetworkInterfaces) == 0 {
		devices = t.EFADevices
		g.efas = fmt.Sprint(devices)
	}
	return g, devices
}

// newTemplate writes the template of a group and names it. The error may be a *bootstrap.Error.
func newTemplate(in Input, o Order, g templateGroup, efa []instancetypes.NetworkDevice) (Template, error) {
	data, err := userData(in, o.CapacityType, g)
	if err != nil {
		return Template{}, err
	}
	spec := in.Class.Spec
	t := Template{
		ImageID: g.image, UserData: data, InstanceProfile: profileName(in.Class),
		BlockDevices: blockDevices(in.Class), NetworkInterfaces: networkInterfaces(in, efa),
		Metadata:   metadataOptions(in),
		Monitoring: ptr.Deref(spec.DetailedMonitoring, false),
		Enclave:    in.Claim.Requests.Get(resourceEnclave) > 0, Tenancy: tenancyFor(in),
		Reservation: reservationSelection(g.reservation, in.Resolved.OpenReservations),
		Group:       o.Group, Partition: placementPartition(in),
		Tags: o.Tags,
	}
	if spec.CPUOptions != nil && spec.CPUOptions.NestedVirtualization != nil {
		t.NestedVirtual = *spec.CPUOptions.NestedVirtualization
	}
	if o.CapacityType == instancetypes.Spot {
		t.SpotTags = o.Tags
	}
	content, err := json.Marshal(t)
	if err != nil {
		return Template{}, fmt.Errorf("hash launch template: %w", err)
	}
	sum := sha256.Sum256(content)
	t.Name = TemplatePrefix(in.Cluster.Name) + hex.EncodeToString(sum[:])[:hashLength]
	return t, nil
}

// TemplatePrefix returns the prefix of the names of all templates of a cluster, and of no others.
func TemplatePrefix(cluster string) string { return "joiner/" + cluster + "/" }

func userData(in Input, capacityType string, g templateGroup) (string, error) {
	spec := in.Class.Spec
	labels := lists.CopyMap(in.Claim.Labels)
	labels[instancetypes.LabelCapacityType] = capacityType
	maps.Copy(labels, reservationLabels(g.reservation))
	node, err := bootstrap.NewNodeRegistration(labels, bootTaints(in.Claim))
	if err != nil {
		return "", err
	}
	b := bootstrap.Input{
		Family: in.Class.ResolvedAMIFamily(), ImageVersion: imageVersion(in.Class, g.image),
		ClusterName: in.Cluster.Name, Endpoint: in.Cluster.Endpoint, CABundle: in.Cluster.CABundle,
		DNSAddress: in.Cluster.DNSAddress, ServiceCIDR: in.Cluster.ServiceCIDR,
		Node: node, MaxPods: g.maxPods,
		RAID0:    ptr.Deref(spec.InstanceStorePolicy, "") == awsv1.InstanceStorePolicyRAID0,
		UserData: ptr.Deref(spec.UserData, ""),
	}
	if spec.Kubelet != nil {
		b.Kubelet = withReserved(*spec.Kubelet, g.reserved)
	}
	return bootstrap.UserData(b)
}

// withReserved is the kubelet's configuration with what its expressions come to for a type.
func withReserved(k awsv1.KubeletConfiguration, is instancetypes.KubeletReserved) awsv1.KubeletConfiguration {
	if is.Kube != "" {
		k.KubeReserved = instancetypes.ReservedAmounts(is.Kube)
	}
	if is.System != "" {
		k.SystemReserved = instancetypes.ReservedAmounts(is.System)
	}
	return k
}

// bootTaints are the taints of the claim and its startup taints as the kubelet brings them, each once, and that of
// stopped capacity.
func bootTaints(c cluster.Claim) []cluster.Taint {
	var out []cluster.Taint
	all := slices.Concat(c.Taints, c.StartupTaints)
	if c.Standby() {
		all = append(all, cluster.Taint{Key: v1.TaintStoppedCapacity, Effect: "NoSchedule"})
	}
	for _, t := range nomination.AtBoot(all) {
		if !slices.Contains(out, t) {
			out = append(out, t)
		}
	}
	return out
}

// imageVersion returns what tells the version of a Bottlerocket image: the alias, else the name of the image, else that
// of another image of the class.
func imageVersion(c *awsv1.EC2NodeClass, image string) string {
	if alias, ok := c.Alias(); ok {
		return alias.Version
	}
	name := ""
	for _, a := range c.Status.AMIs {
		if a.ID == image && a.Name != "" {
			return a.Name
		}
		if name == "" && strings.HasPrefix(a.Name, "bottlerocket") {
			name = a.Name
		}
	}
	return name
}

// tenancyFor is default unless the claim admits nothing but dedicated.
func tenancyFor(in Input) string {
	if in.Claim.Requirements.Has(instancetypes.LabelTenancy, instancetypes.TenancyDefault) {
		return instancetypes.TenancyDefault
	}
	return instancetypes.TenancyDedicated
}

// usesIPv6 reports whether pods and nodes have IPv6 addresses.
func usesIPv6(in Input) bool { return strings.Contains(in.Cluster.DNSAddress, ":") }

// metadataOptions returns how the metadata service answers.
func metadataOptions(in Input) Metadata {
	m := Metadata{HTTPEndpoint: "disabled", HTTPProtocol: "disabled", HopLimit: 2, HTTPTokens: "required"}
	if usesIPv6(in) {
		m.HTTPProtocol = "enabled"
	}
	if o := in.Class.Spec.MetadataOptions; o != nil {
		m = Metadata{
			HTTPEndpoint: cmp.Or(ptr.Deref(o.HTTPEndpoint, ""), "enabled"),
			HTTPProtocol: cmp.Or(ptr.Deref(o.HTTPProtocolIPv6, ""), "disabled"),
			HTTPTokens:   cmp.Or(ptr.Deref(o.HTTPTokens, ""), "required"),
			HopLimit:     int32(ptr.Deref(o.HTTPPutResponseHopLimit, 1)),
		}
	}
	if knowsNoIPv6Metadata(in.Cluster.Region) {
		m.HTTPProtocol = ""
	}
	return m
}

// knowsNoIPv6Metadata reports whether EC2 of the region refuses the setting.
func knowsNoIPv6Metadata(region string) bool {
	return slices.Contains([]string{
		"us-iso-east-1", "us-iso-west-1", "us-isob-east-1", "us-isob-west-1", "us-isof-south-1", "us-isof-east-1",
	}, region)
}
