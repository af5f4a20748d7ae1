package launch

import "joiner.sh/pkg/model/instancetypes"

// subnetOfZone picks one subnet for each zone: that with most addresses to spare, of several the first of the status,
// which lists those with most free addresses first. A zone without a subnet that takes another node has none.
func subnetOfZone(in Input) map[string]string {
	out := map[string]string{}
	for _, s := range in.Class.Status.Subnets {
		a, known := in.Addresses[s.ID]
		if known && a.Left <= 0 {
			continue
		}
		have := out[s.Zone]
		if best, counted := in.Addresses[have]; have == "" || known && counted && a.Spare > best.Spare {
			out[s.Zone] = s.ID
		}
	}
	return out
}

// withSpareAddresses drops the offerings of zones whose addresses the nodes on their way may need for their pods, where
// the same capacity type is to be had in a zone with addresses to spare. What is reserved is paid for and stays.
func withSpareAddresses(in Input, cs []candidate) []candidate {
	subnets := subnetOfZone(in)
	cramped := func(o instancetypes.Offering) bool {
		a, known := in.Addresses[subnets[o.Zone]]
		return known && a.Spare <= 0 && o.CapacityType != instancetypes.Reserved
	}
	roomy := map[string]bool{} // by capacity type
	for _, c := range cs {
		for _, o := range c.offerings {
			roomy[o.CapacityType] = roomy[o.CapacityType] || !cramped(o)
		}
	}
	return withOfferings(cs, func(o instancetypes.Offering) bool { return !roomy[o.CapacityType] || !cramped(o) })
}

// TakenAddresses returns the number of addresses that a node of the order may take in each subnet that it may get into.
// That is one, and one for each pod of the smallest type that is asked for there.
func (o Order) TakenAddresses() map[string]int64 {
	out := map[string]int64{}
	for _, t := range o.Templates {
		for _, v := range t.Overrides {
			if have, ok := out[v.SubnetID]; !ok || v.Pods < have {
				out[v.SubnetID] = v.Pods
			}
		}
	}
	return out
}
