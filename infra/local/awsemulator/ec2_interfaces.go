package awsemulator

import (
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// interfaceTypes are what a network card takes, as DescribeInstanceTypes says. The first card of p6-b300 has no EFA; it
// is for the instance's address alone.
func (t *InstanceType) interfaceTypes(card int) []string {
	if !t.EFA || t.Name == "p6-b300.48xlarge" && card == 0 {
		return []string{"interface"}
	}
	return []string{"interface", "efa", "efa-only"}
}

// supportsIPv6 says of which types EC2 takes IPv6 addresses: all of the current generation, and of the previous one C3,
// R3 and I2.
func (t *InstanceType) supportsIPv6() bool {
	family, _, _ := strings.Cut(t.Name, ".")
	return !slices.Contains([]string{"c1", "g2", "hs1", "m1", "m2", "m3", "t1"}, family)
}

// checkInterfaces refuses network interfaces that instances of the type cannot have.
func checkInterfaces(t *InstanceType, all []networkInterface) *wire.Failure {
	onCard, efas := map[int]int{}, map[int]int{}
	for _, n := range all {
		if f := checkAddresses(t, n); f != nil {
			return f
		}
		card, device := deref(n.NetworkCardIndex), deref(n.DeviceIndex)
		if card >= len(t.CardENIs) {
			return badCombination("NetworkCardIndex %d exceeds the limit for instance type %s.", card, t.Name)
		}
		// MaximumNetworkInterfaces of NetworkCardInfo: the maximum number of network interfaces for the network card
		if onCard[card]++; max(device+1, onCard[card]) > t.CardENIs[card] {
			return badCombination("Interface count exceeds the limit of network card %d of %s.", card, t.Name)
		}
		if !strings.HasPrefix(n.InterfaceType, "efa") {
			continue
		}
		// InterfaceTypes of NetworkCardInfo: the supported interface types for the network card
		if !slices.Contains(t.interfaceTypes(card), n.InterfaceType) {
			return badCombination("Network card %d of %s does not support interface type %s.", card, t.Name,
				n.InterfaceType)
		}
		if efas[card]++; efas[card] > 1 || len(efas) > t.MaxEFAs { // one EFA per network card
			return badCombination("EFA interface count exceeds the limit for instance type %s.", t.Name)
		}
	}
	return nil
}

// checkAddresses refuses what EC2's documents of the parameters rule out: an interface gets a number of addresses or of
// prefixes, prefixes need an instance on the Nitro system, and IPv6 a type that supports it.
func checkAddresses(t *InstanceType, n networkInterface) *wire.Failure {
	prefixes := deref(n.Ipv4PrefixCount) + deref(n.Ipv6PrefixCount)
	primary := n.PrimaryIpv6 != nil && *n.PrimaryIpv6
	switch {
	case deref(n.Ipv6AddressCount) > 0 && deref(n.Ipv6PrefixCount) > 0:
		return badCombination("The parameters Ipv6AddressCount and Ipv6PrefixCount may not be used together.")
	case prefixes > 0 && t.Hypervisor == "xen":
		return badCombination("Prefix delegation is not supported by instance type %s.", t.Name)
	case !t.supportsIPv6() && (primary || deref(n.Ipv6AddressCount)+deref(n.Ipv6PrefixCount) > 0):
		return badCombination("IPv6 is not supported by instance type %s.", t.Name)
	}
	return nil
}

func badCombination(format string, args ...any) *wire.Failure {
	return wire.Fail(400, "InvalidParameterCombination", format, args...)
}

func deref(n *int) int {
	if n == nil {
		return 0
	}
	return *n
}
