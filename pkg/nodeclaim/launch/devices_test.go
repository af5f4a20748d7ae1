package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
)

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
