package awsemulator

import (
	"slices"
	"strings"
)

// vpcEndpoint is a VPC endpoint of the one VPC.
type vpcEndpoint struct {
	ID, Service string
	Gateway     bool
	PrivateDNS  bool
}

// PutVPCEndpoint makes an endpoint exist for a service (ec2, s3, ...) and returns its id: an interface endpoint with
// private DNS, or a gateway.
func PutVPCEndpoint(c *Cloud, service string, gateway bool) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := vpcEndpoint{ID: "vpce-0" + hash16(service), Service: "com.amazonaws." + c.opt.Region + "." + service,
		Gateway: gateway, PrivateDNS: !gateway}
	c.endpoints = append(c.endpoints, e)
	return e.ID
}

type describeVpcEndpointsInput struct {
	page
	Filter        []filter
	VpcEndpointID []string `query:"VpcEndpointId"`
}

type xmlVPCEndpoint struct {
	ID         string `xml:"vpcEndpointId"`
	Kind       string `xml:"vpcEndpointType"`
	VPC        string `xml:"vpcId"`
	Service    string `xml:"serviceName"`
	State      string `xml:"state"`
	PrivateDNS bool   `xml:"privateDnsEnabled"`
	Owner      string `xml:"ownerId"`
}

func (c *networks) describeVpcEndpoints(_ *call, in *describeVpcEndpointsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, id := range in.VpcEndpointID {
		if !slices.ContainsFunc(c.endpoints, func(e vpcEndpoint) bool { return e.ID == id }) {
			return nil, notFound("InvalidVpcEndpointId.NotFound", "Vpc Endpoint Id", id)
		}
	}
	var all []xmlVPCEndpoint
	for _, e := range c.endpoints {
		x := xmlVPCEndpoint{ID: e.ID, Kind: "Interface", VPC: c.vpc.id, Service: e.Service, State: "available",
			PrivateDNS: e.PrivateDNS, Owner: c.opt.Account}
		if e.Gateway {
			x.Kind = "Gateway"
		}
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
			value, known := map[string]string{"vpc-id": x.VPC, "service-name": x.Service, "vpc-endpoint-id": x.ID,
				"vpc-endpoint-state": x.State, "vpc-endpoint-type": x.Kind}[name]
			return []string{value}, known
		})
		if err != nil {
			return nil, err
		}
		if ok && oneOf(in.VpcEndpointID, e.ID) {
			all = append(all, x)
		}
	}
	slices.SortFunc(all, func(a, b xmlVPCEndpoint) int { return strings.Compare(a.ID, b.ID) })
	var out struct {
		Endpoints []xmlVPCEndpoint `xml:"vpcEndpointSet>item"`
		Next      string           `xml:"nextToken,omitempty"`
	}
	var err error
	out.Endpoints, out.Next, err = cutPage(all, in.page, 1000, func(e xmlVPCEndpoint) string { return e.ID })
	return out, err
}

// VPCID is the id of the one VPC.
func VPCID(c *Cloud) string { return c.vpc.id }
