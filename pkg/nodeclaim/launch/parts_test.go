package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
)

// Bare metal of every size and whatever has an accelerator is dear, and left out where something else would do.
func TestWhatIsExotic(t *testing.T) {
	for name, want := range map[string]bool{"m5.large": false, "m5.metal": true, "m7i.metal-24xl": true, "metal.large": false} {
		if got := isExotic(&instancetypes.Type{Name: name}); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
	for _, r := range []string{instancetypes.ResourceNVIDIA, instancetypes.ResourceAMD, instancetypes.ResourceNeuron, instancetypes.ResourceNeuronCore, instancetypes.ResourceGaudi} {
		if !isExotic(&instancetypes.Type{Name: "x.large", Capacity: resources.List{}.With(r, 1)}) {
			t.Errorf("a type with %s is plain", r)
		}
	}
}

// Zones short of addresses give way to others that sell the same, but not what is reserved there.
func TestReservedCapacityStaysWhereAddressesAreShort(t *testing.T) {
	in := Input{Class: &awsv1.EC2NodeClass{}, Addresses: map[string]SubnetAddresses{"sa": {Left: 9, Spare: 0}, "sb": {Left: 9, Spare: 1}}}
	in.Class.Status.Subnets = []awsv1.Subnet{{ID: "sa", Zone: "a"}, {ID: "sb", Zone: "b"}}
	offers := func(kind string) (out []instancetypes.Offering) {
		for _, zone := range []string{"a", "b"} {
			out = append(out, instancetypes.Offering{Offer: instancetypes.Offer{CapacityType: kind, Zone: zone}})
		}
		return out
	}
	for kind, want := range map[string]int{instancetypes.Spot: 1, instancetypes.OnDemand: 1, instancetypes.Reserved: 2} {
		if got := withSpareAddresses(in, []candidate{{t: &instancetypes.Type{}, offers: offers(kind)}}); len(got) != 1 || len(got[0].offers) != want {
			t.Errorf("%s: %+v, want %d offers", kind, got, want)
		}
	}
}

// A partition that the group does not have is left to EC2.
func TestThePartitionOfATemplate(t *testing.T) {
	for want, requirement := range map[int32]requirements.Requirement{2: requirements.Of(instancetypes.LabelPartition, "2", "3"), 0: requirements.Of(instancetypes.LabelPartition, "4")} {
		in := Input{Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirement)}}
		if got := placementPartition(in); got != want {
			t.Errorf("of %s it is %d, want %d", requirement, got, want)
		}
	}
	for what, in := range map[string]Input{
		"no group":       {Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "2"))}},
		"no requirement": {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}},
		"partition 0":    {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "0"))}},
		"no number":      {Resolved: instancetypes.Class{Placement: &instancetypes.Placement{Partitions: 3}}, Claim: cluster.Claim{Requirements: requirements.NewSet(requirements.Of(instancetypes.LabelPartition, "x"))}},
	} {
		if got := placementPartition(in); got != 0 {
			t.Errorf("%s: it is %d", what, got)
		}
	}
}

// What leaks are told by is ours, whatever tags a class has that nobody refused yet.
func TestOurTagsBeatTheUsers(t *testing.T) {
	in := Input{Cluster: Cluster{Name: "demo"}, Class: &awsv1.EC2NodeClass{}, Claim: cluster.Claim{Name: "c", UID: "u", Pool: "p"}}
	in.Class.Name = "default"
	in.Class.Spec.Tags = map[string]string{TagClusterName: "other", TagNodePool: "x", TagNodeClass: "x", TagClaim: "x", TagClaimUID: "x", awsv1.TagClusterPrefix + "demo": "shared", "team": "a"}
	want := map[string]string{TagClusterName: "demo", TagNodePool: "p", TagNodeClass: "default", TagClaim: "c", TagClaimUID: "u", awsv1.TagClusterPrefix + "demo": "owned", "team": "a"}
	if d := cmp.Diff(want, claimTags(in, staticTags(in))); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if in.Class.Spec.Tags[TagClusterName] != "other" {
		t.Error("the tags of the class were changed")
	}
}

// Interfaces for EFA are the devices of the type; one that takes no EFA is an ordinary one.
func TestInterfacesForEFA(t *testing.T) {
	got := networkInterfaces(Input{Class: &awsv1.EC2NodeClass{}},
		[]instancetypes.NetworkDevice{{}, {Card: 1, Device: 1, EFA: true}, {Card: 3, EFA: true}})
	want := []NetworkInterface{{}, {CardIndex: 1, DeviceIndex: 1, Type: "efa"}, {CardIndex: 3, Type: "efa"}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("interfaces (-want +got):\n%s", d)
	}
}

// An interface in an IPv6 cluster has an address of its own. EC2 does not give it prefixes beside that.
func TestPrefixesInAnIPv6Cluster(t *testing.T) {
	two := int32(2)
	in := Input{Class: &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{IPPrefixCount: &two}}, Cluster: Cluster{DNSAddress: "fd00::a"}}
	if d := cmp.Diff([]NetworkInterface{{PrimaryIPv6: true, IPv6AddressCount: 1}}, networkInterfaces(in, nil)); d != "" {
		t.Errorf("IPv6 (-want +got):\n%s", d)
	}
	in.Cluster.DNSAddress = "10.100.0.10"
	if d := cmp.Diff([]NetworkInterface{{IPv4PrefixCount: 2}}, networkInterfaces(in, nil)); d != "" {
		t.Errorf("IPv4 (-want +got):\n%s", d)
	}
}

// What metadata options leave unset is as the CRD would fill it in; without any the service of the instance is closed.
func TestMetadataThatIsNotSaid(t *testing.T) {
	in := Input{Class: &awsv1.EC2NodeClass{}, Cluster: Cluster{Region: "us-west-2"}}
	if d := cmp.Diff(Metadata{HTTPEndpoint: "disabled", HTTPProtocol: "disabled", HopLimit: 2, HTTPTokens: "required"}, metadataOptions(in)); d != "" {
		t.Errorf("without options (-want +got):\n%s", d)
	}
	in.Class.Spec.MetadataOptions = &awsv1.MetadataOptions{}
	if d := cmp.Diff(Metadata{HTTPEndpoint: "enabled", HTTPProtocol: "disabled", HopLimit: 1, HTTPTokens: "required"}, metadataOptions(in)); d != "" {
		t.Errorf("with empty options (-want +got):\n%s", d)
	}
}

// A type that is to be had neither on demand nor at all is none to rehearse with, and reserved offers say that a class
// can be launched with.
func TestTypesToRehearseWith(t *testing.T) {
	offer := func(kind string, available bool, why string, r *instancetypes.Reservation) instancetypes.Offering {
		return instancetypes.Offering{Offer: instancetypes.Offer{CapacityType: kind}, Price: 1, Available: available, Why: why, Reservation: r}
	}
	for want, o := range map[float64]instancetypes.Offering{1: offer(instancetypes.OnDemand, true, "", nil), 0: offer(instancetypes.OnDemand, false, "no AMI", nil)} {
		if got := rehearsalPrice(&instancetypes.Type{Offerings: []instancetypes.Offering{o}}); got != want {
			t.Errorf("%+v costs %g, want %g", o, got, want)
		}
	}
	if got := rehearsalPrice(&instancetypes.Type{Offerings: []instancetypes.Offering{offer(instancetypes.Spot, true, "", nil)}}); got != 0 {
		t.Errorf("on demand what is spot only costs %g", got)
	}
	full := offer(instancetypes.Reserved, false, "the reservation is full", &instancetypes.Reservation{ID: "cr-1"})
	none := offer(instancetypes.OnDemand, false, "no AMI", nil)
	if got := UnusableReason([]instancetypes.Type{{Offerings: []instancetypes.Offering{none}}}); got != "no AMI (1 types)" {
		t.Errorf("without anything to be had: %q", got)
	}
	if got := UnusableReason([]instancetypes.Type{{Offerings: []instancetypes.Offering{full, none}}}); got != "" {
		t.Errorf("with a reservation: %q", got)
	}
}
