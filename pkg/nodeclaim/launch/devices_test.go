package launch

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/resources"
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

// Instances get EFA interfaces where the claim asks for them, by the resource or by their DRA driver, unless the class
// has interfaces of its own.
func TestWhoGetsEFA(t *testing.T) {
	typ := &instancetypes.Type{EFADevices: []instancetypes.NetworkDevice{{EFA: true}}}
	own := &awsv1.EC2NodeClass{Spec: awsv1.EC2NodeClassSpec{NetworkInterfaces: []*awsv1.NetworkInterface{{}}}}
	for name, c := range map[string]struct {
		class *awsv1.EC2NodeClass
		claim cluster.Claim
		want  int
	}{
		"resource":     {&awsv1.EC2NodeClass{}, cluster.Claim{Requests: resources.List{}.With(instancetypes.ResourceEFA, 1)}, 1},
		"driver":       {&awsv1.EC2NodeClass{}, cluster.Claim{Annotations: map[string]string{"karpenter.sh/requested-dra-drivers": "dra.net,gpu.nvidia.com"}}, 1},
		"other driver": {&awsv1.EC2NodeClass{}, cluster.Claim{Annotations: map[string]string{"karpenter.sh/requested-dra-drivers": "gpu.nvidia.com"}}, 0},
		"nothing":      {&awsv1.EC2NodeClass{}, cluster.Claim{}, 0},
		"own":          {own, cluster.Claim{Annotations: map[string]string{"karpenter.sh/requested-dra-drivers": "dra.net"}}, 0},
	} {
		if _, got := groupOf(Input{Class: c.class, Claim: c.claim}, typ, instancetypes.Offering{}); len(got) != c.want {
			t.Errorf("%s: %d devices, want %d", name, len(got), c.want)
		}
	}
}
