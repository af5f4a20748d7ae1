package awsemulator

import "strings"

// Route is one line of the main route table of a VPC: To is a CIDR, or the prefix list of S3 (PrefixListS3).
type Route struct{ To, Via string } // Via: nat-…, igw-…, vpce-…, tgw-…, eni-… or local

// PrefixListS3 is the id of S3's addresses, as routes of a gateway endpoint name them.
const PrefixListS3 = "pl-0a1b2c3d4e5f67890"

// SetRoutes says by which routes every subnet goes. Without it there is a NAT gateway.
func SetRoutes(c *Cloud, routes ...Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.routes = routes
}

type describeRouteTablesInput struct {
	page
	Filter []filter
}

type xmlRoute struct {
	CIDR    string `xml:"destinationCidrBlock,omitempty"`
	List    string `xml:"destinationPrefixListId,omitempty"`
	Gateway string `xml:"gatewayId,omitempty"`
	NAT     string `xml:"natGatewayId,omitempty"`
	Transit string `xml:"transitGatewayId,omitempty"`
	ENI     string `xml:"networkInterfaceId,omitempty"`
	State   string `xml:"state"`
}

type xmlRouteTable struct {
	ID           string                     `xml:"routeTableId"`
	VPC          string                     `xml:"vpcId"`
	Routes       []xmlRoute                 `xml:"routeSet>item"`
	Associations []xmlRouteTableAssociation `xml:"associationSet>item"`
}

type xmlRouteTableAssociation struct {
	Main bool `xml:"main"`
}

// describeRouteTables answers with the main route table of the VPC that is asked for.
func (c *networks) describeRouteTables(_ *call, in *describeRouteTablesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var out struct {
		Tables []xmlRouteTable `xml:"routeTableSet>item"`
	}
	routes := c.routes
	if routes == nil {
		routes = []Route{{"0.0.0.0/0", "nat-0a1b2c3d4e5f67890"}}
	}
	for _, f := range in.Filter {
		if f.Name != "vpc-id" || len(f.Value) != 1 {
			continue
		}
		table := xmlRouteTable{ID: "rtb-0a1b2c3d4e5f67890", VPC: f.Value[0],
			Routes:       []xmlRoute{{CIDR: "10.0.0.0/16", Gateway: "local", State: "active"}},
			Associations: []xmlRouteTableAssociation{{Main: true}}}
		for _, r := range routes {
			table.Routes = append(table.Routes, r.toXML())
		}
		out.Tables = append(out.Tables, table)
	}
	return out, nil
}

func (r Route) toXML() xmlRoute {
	x := xmlRoute{State: "active"}
	if strings.HasPrefix(r.To, "pl-") {
		x.List = r.To
	} else {
		x.CIDR = r.To
	}
	switch kind, _, _ := strings.Cut(r.Via, "-"); kind {
	case "nat":
		x.NAT = r.Via
	case "tgw":
		x.Transit = r.Via
	case "eni":
		x.ENI = r.Via
	default:
		x.Gateway = r.Via
	}
	return x
}

type xmlPrefixList struct {
	ID   string `xml:"prefixListId"`
	Name string `xml:"prefixListName"`
}

// describePrefixLists knows that of S3.
func (c *networks) describePrefixLists(_ *call, in *describeRouteTablesInput) (any, error) {
	var out struct {
		Lists []xmlPrefixList `xml:"prefixListSet>item"`
	}
	name := "com.amazonaws." + c.opt.Region + ".s3"
	for _, f := range in.Filter {
		if f.Name == "prefix-list-name" && oneOf(f.Value, name) {
			out.Lists = append(out.Lists, xmlPrefixList{PrefixListS3, name})
		}
	}
	return out, nil
}
