package provision

import (
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

// subnetAddresses holds the addresses of subnets that instances take which were launched, or may have been, since the
// addresses were counted.
type subnetAddresses struct {
	nodes map[string]int64 // by subnet: addresses that are gone
	pods  map[string]int64 // by subnet: addresses that nodes will need when they are full
}

// freeAddresses returns the addresses left in the class's subnets. A subnet that EC2 refused for want of addresses has
// none.
func (o *orderChooser) freeAddresses(c instancetypes.Class) map[string]launch.SubnetAddresses {
	o.mu.Lock()
	defer o.mu.Unlock()
	full := map[string]bool{}
	for _, u := range o.unavailable {
		if u.OfferingKey == (instancetypes.OfferingKey{}) && o.p.Now().Before(u.Until) {
			full[u.Scope] = true
		}
	}
	out := map[string]launch.SubnetAddresses{}
	for _, s := range c.Subnets {
		switch {
		case full[s.ID]:
			out[s.ID] = launch.SubnetAddresses{}
		case s.Free != nil:
			left := *s.Free - o.coming.nodes[s.ID]
			out[s.ID] = launch.SubnetAddresses{Left: left, Spare: left - o.coming.pods[s.ID]}
		}
	}
	return out
}

// reserveAddresses counts what the order may take in each of its subnets, until back is called with what it was given:
// then only the subnets of those instances count. An order that came to nothing takes nothing.
func (o *orderChooser) reserveAddresses(order launch.Order) (back func([]cluster.Instance)) {
	taken := order.TakenAddresses()
	count := func(subnet string, nodes int64) {
		o.coming.nodes[subnet] += nodes
		o.coming.pods[subnet] += nodes * taken[subnet]
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	for subnet := range taken {
		count(subnet, int64(order.Count()))
	}
	return func(got []cluster.Instance) {
		o.mu.Lock()
		defer o.mu.Unlock()
		for subnet := range taken {
			count(subnet, -int64(order.Count()))
		}
		for _, i := range got {
			count(i.SubnetID, 1)
		}
	}
}
