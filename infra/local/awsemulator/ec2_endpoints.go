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

type describeVpcEndpointServicesInput struct {
	page
	Filter []filter
}

type xmlEndpointService struct {
	Name  string   `xml:"serviceName"`
	Kind  []string `xml:"serviceType>item>serviceType"`
	Zones []string `xml:"availabilityZoneSet>item"`
	Owner string   `xml:"owner"`
}

// endpointServices are the services with endpoints that somebody may want in a VPC of functions.
func endpointServices() []string { return []string{"ec2", "eks", "lambda", "s3", "ssm"} }

// SetZonesOfEndpoints has a service offering interface endpoints in these zones only.
func SetZonesOfEndpoints(c *Cloud, service string, zones ...string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.endpointZones == nil {
		c.endpointZones = map[string][]string{}
	}
	c.endpointZones[service] = zones
}

func (c *networks) describeVpcEndpointServices(_ *call, in *describeVpcEndpointServicesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []xmlEndpointService
	for _, service := range endpointServices() {
		zones, set := c.endpointZones[service]
		for _, z := range c.vpc.zones {
			if !set {
				zones = append(zones, z.name)
			}
		}
		x := xmlEndpointService{Name: "com.amazonaws." + c.opt.Region + "." + service, Kind: []string{"Interface"},
			Zones: zones, Owner: "amazon"}
		ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
			value, known := map[string]string{"owner": x.Owner, "service-name": x.Name, "service-type": x.Kind[0]}[name]
			return []string{value}, known
		})
		if err != nil {
			return nil, err
		}
		if ok {
			all = append(all, x)
		}
	}
	var out struct {
		Services []xmlEndpointService `xml:"serviceDetailSet>item"`
		Next     string               `xml:"nextToken,omitempty"`
	}
	var err error
	out.Services, out.Next, err = cutPage(all, in.page, 1000, func(s xmlEndpointService) string { return s.Name })
	return out, err
}

// VPCID is the id of the one VPC.
func VPCID(c *Cloud) string { return c.vpc.id }
