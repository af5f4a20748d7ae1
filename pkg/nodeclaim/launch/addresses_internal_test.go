package launch

import (
	"testing"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// Zones short of addresses give way to others that sell the same, but not what is reserved there.
func TestReservedCapacityStaysWhereAddressesAreShort(t *testing.T) {
	in := Input{Class: &awsv1.EC2NodeClass{}, Addresses: map[string]SubnetAddresses{"sa": {Left: 9, Spare: 0}, "sb": {Left: 9, Spare: 1}}}
	in.Class.Status.Subnets = []awsv1.Subnet{{ID: "sa", Zone: "a"}, {ID: "sb", Zone: "b"}}
	offerings := func(kind string) (out []instancetypes.Offering) {
		for _, zone := range []string{"a", "b"} {
			out = append(out, instancetypes.Offering{OfferingKey: instancetypes.OfferingKey{CapacityType: kind, Zone: zone}})
		}
		return out
	}
	for kind, want := range map[string]int{instancetypes.Spot: 1, instancetypes.OnDemand: 1, instancetypes.Reserved: 2} {
		if got := withSpareAddresses(in, []candidate{{t: &instancetypes.Type{}, offerings: offerings(kind)}}); len(got) != 1 || len(got[0].offerings) != want {
			t.Errorf("%s: %+v, want %d offerings", kind, got, want)
		}
	}
}
