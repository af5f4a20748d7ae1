package awsemulator_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/infra/local/awsemulator"
)

// Which network interfaces a type takes: EFA on cards that have it, one each and not more than the type's, no device
// that the card lacks, addresses or prefixes, prefixes on Nitro alone, and IPv6 not on every type.
func TestWhichInterfacesATypeTakes(t *testing.T) {
	r := start(t, awsemulator.Options{})
	group := *must(r.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{
		Filters: []types.Filter{{Name: aws.String("group-name"), Values: []string{"demo-node"}}},
	}))(t).SecurityGroups[0].GroupId
	type nic = types.InstanceNetworkInterfaceSpecification
	on := func(card, device int32, kind string) nic {
		return nic{NetworkCardIndex: aws.Int32(card), DeviceIndex: aws.Int32(device), InterfaceType: aws.String(kind)}
	}
	for _, c := range []struct {
		what, kind string
		ok         bool
		nics       []nic
	}{
		{"no EFA on the first card of p6-b300", "p6-b300.48xlarge", true, []nic{on(0, 0, "interface"), on(1, 1, "efa"), on(16, 1, "efa-only")}},
		{"EFA on the first card of p6-b300", "p6-b300.48xlarge", false, []nic{on(0, 0, "efa")}},
		{"EFA on a card each", "p5.48xlarge", true, []nic{on(0, 0, "efa"), on(31, 1, "efa")}},
		{"two EFA on a card", "p5.48xlarge", false, []nic{on(0, 0, "efa"), on(0, 1, "efa")}},
		{"a device that the card lacks", "p5.48xlarge", false, []nic{on(0, 0, "efa"), on(1, 2, "efa")}},
		{"a card that the type lacks", "p5.48xlarge", false, []nic{on(0, 0, "efa"), on(32, 1, "efa")}},
		{"EFA on a type without", "m5.large", false, []nic{on(0, 0, "efa")}},
		{"two plain interfaces", "m5.large", true, []nic{on(0, 0, "interface"), on(0, 1, "interface")}},
		{"IPv6 addresses and prefixes", "m5.large", false, []nic{{DeviceIndex: aws.Int32(0), Ipv6AddressCount: aws.Int32(1), Ipv6PrefixCount: aws.Int32(1)}}},
		{"an IPv6 address", "m5.large", true, []nic{{DeviceIndex: aws.Int32(0), Ipv6AddressCount: aws.Int32(1), PrimaryIpv6: aws.Bool(true)}}},
		{"prefixes", "m5.large", true, []nic{{DeviceIndex: aws.Int32(0), Ipv4PrefixCount: aws.Int32(2)}}},
		{"prefixes on Xen", "m4.large", false, []nic{{DeviceIndex: aws.Int32(0), Ipv4PrefixCount: aws.Int32(2)}}},
		{"an IPv6 address on Xen of the current generation", "t2.micro", true, []nic{{DeviceIndex: aws.Int32(0), Ipv6AddressCount: aws.Int32(1)}}},
		{"an IPv6 address on an old type", "m3.large", false, []nic{{DeviceIndex: aws.Int32(0), Ipv6AddressCount: aws.Int32(1)}}},
	} {
		for i := range c.nics {
			c.nics[i].Groups, c.nics[i].SubnetId = []string{group}, aws.String(r.subnets(t)["us-west-2a"])
		}
		_, err := r.ec2.RunInstances(t.Context(), &ec2.RunInstancesInput{DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
			InstanceType: types.InstanceType(c.kind), NetworkInterfaces: c.nics,
			ImageId: aws.String(r.image(t, "amazon-eks-node-al2023-x86_64-standard-1.36-v20261109"))})
		t.Log(c.what)
		wantCode(t, err, map[bool]string{true: "DryRunOperation", false: "InvalidParameterCombination"}[c.ok])
	}
}
