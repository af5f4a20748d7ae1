// Package vpc says who in a VPC reaches which service of AWS: by its endpoints, and by what their security groups admit
// to port 443. It knows no routes, no other ports, no policies of endpoints, and of what leads out of the VPC only
// whether there is anything.
package vpc

import "slices"

// Network is one VPC.
type Network struct {
	Endpoints []Endpoint
	Rules     []Rule
	WayOut    bool // to public addresses, as through a NAT gateway
}

// Endpoint is a VPC endpoint of a service.
type Endpoint struct {
	Service    string // such as ec2
	Gateway    bool
	PrivateDNS bool
	Groups     []string // security groups; a gateway has none
}

// Rule lets callers into a security group.
type Rule struct {
	Into string
	From string // a security group; empty: everybody in the VPC
}

// Reaches reports whether a caller with these security groups reaches the service. Where an interface endpoint has
// private DNS, the service's name leads all of the VPC to it: whom its groups do not admit has no other way.
func (n Network) Reaches(from []string, service string) bool {
	for _, e := range n.Endpoints {
		switch {
		case e.Service != service:
		case e.Gateway:
			return true
		case e.PrivateDNS:
			return n.Admits(from, e.Groups)
		}
	}
	return n.WayOut
}

// Admits reports whether a rule lets a caller with these security groups into one of those.
func (n Network) Admits(from, into []string) bool {
	return slices.ContainsFunc(n.Rules, func(r Rule) bool {
		return slices.Contains(into, r.Into) && (r.From == "" || slices.Contains(from, r.From))
	})
}
