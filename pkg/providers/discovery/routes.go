package discovery

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/paging"
)

// Route is one way out of a subnet.
type Route struct {
	To  string // a CIDR, or the id of a prefix list
	Via string // the id of what it leads through, such as nat-0123456789abcdef0
}

// SubnetRoutes are the ways out of one subnet.
type SubnetRoutes struct {
	Subnet string
	Routes []Route
}

// ReadSubnetRoutes reads the active routes of subnets of one VPC, and the id of the prefix list that routes of a
// gateway endpoint for S3 name.
func ReadSubnetRoutes(ctx context.Context, c *ec2.Client, region, vpc string, subnets []string) (all []SubnetRoutes,
	s3List string, err error) {
	lists, err := c.DescribePrefixLists(ctx, &ec2.DescribePrefixListsInput{
		Filters: []types.Filter{ec2Filter("prefix-list-name", "com.amazonaws."+region+".s3")}})
	if err != nil {
		return nil, "", fmt.Errorf("describe the prefix list of S3: %w", err)
	}
	if len(lists.PrefixLists) > 0 {
		s3List = aws.ToString(lists.PrefixLists[0].PrefixListId)
	}
	var tables []types.RouteTable
	pages := ec2.NewDescribeRouteTablesPaginator(c, &ec2.DescribeRouteTablesInput{
		Filters: []types.Filter{ec2Filter("vpc-id", vpc)}})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, "", fmt.Errorf("describe route tables of %s: %w", vpc, err)
		}
		tables = append(tables, page.RouteTables...)
	}
	for _, subnet := range subnets {
		all = append(all, SubnetRoutes{Subnet: subnet, Routes: routesOf(subnet, tables)})
	}
	return all, s3List, nil
}

// routesOf are the routes of the subnet's own table, else of the VPC's main one.
func routesOf(subnet string, tables []types.RouteTable) []Route {
	has := func(is func(types.RouteTableAssociation) bool) int {
		return slices.IndexFunc(tables, func(t types.RouteTable) bool {
			return slices.ContainsFunc(t.Associations, is)
		})
	}
	i := has(func(a types.RouteTableAssociation) bool { return aws.ToString(a.SubnetId) == subnet })
	if i < 0 {
		i = has(func(a types.RouteTableAssociation) bool { return aws.ToBool(a.Main) })
	}
	if i < 0 {
		return nil
	}
	var out []Route
	for _, r := range tables[i].Routes {
		if r.State != types.RouteStateActive {
			continue
		}
		route := Route{To: aws.ToString(r.DestinationCidrBlock) + aws.ToString(r.DestinationPrefixListId)}
		for _, via := range []*string{r.GatewayId, r.NatGatewayId, r.TransitGatewayId, r.NetworkInterfaceId,
			r.InstanceId, r.VpcPeeringConnectionId, r.LocalGatewayId, r.CoreNetworkArn} {
			if route.Via == "" {
				route.Via = aws.ToString(via)
			}
		}
		out = append(out, route)
	}
	return out
}
