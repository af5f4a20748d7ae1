package stack

import (
	"fmt"
	"log"
	"net/url"
	"slices"
	"strconv"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsec2"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/settings"
)

// network is the network of the functions: outside of any VPC, or in subnets from which the API server's private
// endpoint can be reached.
type network struct {
	vpc     awsec2.IVpc // nil: outside
	subnets *awsec2.SubnetSelection
	groups  *[]awsec2.ISecurityGroup
}

// endpoint is a private way to one AWS service that the functions call. What Lambda does for them, such as
// logs, traces and dead letters, does not go through the VPC.
type endpoint struct{ id, service, why string }

func interfaceEndpoints(services []string) []endpoint {
	return slices.DeleteFunc([]endpoint{
		{"Ec2", "ec2", "launches, look-ups"}, {"Ssm", "ssm", "images by alias"},
		{"Eks", "eks", "the cluster's address"}, {"Lambda", "lambda", "wake-ups"},
	}, func(e endpoint) bool { return !slices.Contains(services, e.service) })
}

// usdPerEndpointHour is the price of an interface endpoint in one zone in us-east-1, beside USD 0.01 for each GB.
const usdPerEndpointHour = 0.01

// checkNetwork finds settings that do not go together.
func checkNetwork(v settings.StackValues) error {
	in := len(v.SubnetIDs) > 0
	switch {
	case in != (v.VPCID != ""):
		return fmt.Errorf("settings: vpcID and subnetIDs belong together: give both for functions in a VPC, or neither")
	case !in && (len(v.SecurityGroupIDs) > 0 || v.ClusterSecurityGroupID != "" || len(v.VPCEndpoints) > 0):
		return fmt.Errorf("settings: securityGroupIDs, clusterSecurityGroupID and vpcEndpoints are for functions in a VPC: give vpcID and subnetIDs too")
	case len(v.SecurityGroupIDs) > 0 && v.ClusterSecurityGroupID != "":
		return fmt.Errorf("settings: clusterSecurityGroupID lets a security group of the stack's own in; with securityGroupIDs there is none: remove one of the two")
	}
	return nil
}

// addNetwork puts the functions into the subnets of the settings. Without security groups of the user's it makes one
// that may only call out, to port 443, and lets it into the cluster's if the settings name that.
func (s *joiner) addNetwork() {
	set := s.props.Stack
	if len(set.SubnetIDs) == 0 {
		return
	}
	// In another order they are the same to Lambda, which publishes no second version of that.
	set.SubnetIDs = slices.Sorted(slices.Values(set.SubnetIDs))
	set.SecurityGroupIDs = slices.Sorted(slices.Values(set.SecurityGroupIDs))
	zones := make([]*string, len(set.SubnetIDs)) // only their number counts
	for i := range zones {
		zones[i] = jsii.String(fmt.Sprintf("zone-%d", i))
	}
	s.net.vpc = awsec2.Vpc_FromVpcAttributes(s.Stack, jsii.String("Vpc"), &awsec2.VpcAttributes{VpcId: &set.VPCID,
		AvailabilityZones: &zones, PrivateSubnetIds: jsii.Strings(set.SubnetIDs...)})
	s.net.subnets = &awsec2.SubnetSelection{Subnets: s.net.vpc.PrivateSubnets()}
	var groups []awsec2.ISecurityGroup
	for i, id := range set.SecurityGroupIDs {
		groups = append(groups, awsec2.SecurityGroup_FromSecurityGroupId(s.Stack,
			jsii.String(fmt.Sprintf("Group%d", i)), &id,
			&awsec2.SecurityGroupImportOptions{Mutable: jsii.Bool(false)}))
	}
	if len(groups) == 0 {
		groups = append(groups, s.addSecurityGroup())
	}
	s.net.groups = &groups
	if len(set.VPCEndpoints) > 0 {
		s.addEndpoints()
	}
}

func (s *joiner) addSecurityGroup() awsec2.ISecurityGroup {
	own := awsec2.NewSecurityGroup(s.Stack, jsii.String("FunctionsGroup"), &awsec2.SecurityGroupProps{Vpc: s.net.vpc,
		Description: jsii.String("Functions of Joiner for cluster " + s.cluster), AllowAllOutbound: jsii.Bool(false)})
	// Lambda keeps the network of versions that stay. In another VPC the stack makes another group.
	resourceOf(own).CfnOptions().SetDeletionPolicy(awscdk.CfnDeletionPolicy_DELETE)
	resourceOf(own).CfnOptions().SetUpdateReplacePolicy(awscdk.CfnDeletionPolicy_RETAIN)
	for _, out := range s.waysOut() {
		own.AddEgressRule(awsec2.Peer_AnyIpv4(), awsec2.Port_Tcp(&out.port), &out.why, nil)
	}
	if id := s.props.Stack.ClusterSecurityGroupID; id != "" {
		ingress := awsec2.NewCfnSecurityGroupIngress(s.Stack, jsii.String("IntoCluster"),
			&awsec2.CfnSecurityGroupIngressProps{
				GroupId: &id, SourceSecurityGroupId: own.SecurityGroupId(), IpProtocol: jsii.String("tcp"),
				FromPort: jsii.Number(443), ToPort: jsii.Number(443),
				Description: jsii.String("Functions of Joiner"),
			})
		s.ways = append(s.ways, ingress)
	}
	return own
}

// wayOut is a port that the functions call.
type wayOut struct {
	port float64
	why  string
}

// waysOut are the ports of all that the functions call, each once.
func (s *joiner) waysOut() []wayOut {
	out := []wayOut{{443, "API server and AWS"}}
	if port := portOf(s.props.Functions.RemoteWrite.URL); port != out[0].port {
		out = append(out, wayOut{port, "remoteWriteURL"})
	}
	return out
}

// portOf is the TCP port of a URL that the settings have checked; 443 where nothing else is said.
func portOf(address string) float64 {
	u, err := url.Parse(address)
	if err != nil {
		return 443
	}
	if port, err := strconv.ParseUint(u.Port(), 10, 16); err == nil {
		return float64(port)
	}
	if u.Scheme == "http" {
		return 80
	}
	return 443
}

// addEndpoints makes private ways to what the functions call, and says what they cost. By its private DNS an endpoint
// answers for the service to all of the VPC, so it admits everybody there, nodes above all: it has private addresses
// only. Where nodes stay when the stack goes, so do the endpoints that they call.
func (s *joiner) addEndpoints() {
	group := awsec2.NewSecurityGroup(s.Stack, jsii.String("EndpointsGroup"), &awsec2.SecurityGroupProps{Vpc: s.net.vpc,
		Description:      jsii.String("Endpoints for the functions of Joiner for cluster " + s.cluster),
		AllowAllOutbound: jsii.Bool(false)})
	for _, peer := range []awsec2.IPeer{awsec2.Peer_AnyIpv4(), awsec2.Peer_AnyIpv6()} {
		group.AddIngressRule(peer, awsec2.Port_Tcp(jsii.Number(443)), jsii.String("Everybody in the VPC"), nil)
	}
	made := []awscdk.CfnResource{resourceOf(group)}
	var subnets []any
	for _, id := range s.props.Stack.SubnetIDs {
		subnets = append(subnets, id)
	}
	for _, e := range interfaceEndpoints(s.props.Stack.VPCEndpoints) {
		private := awsec2.NewCfnVPCEndpoint(s.Stack, jsii.String(e.id+"Endpoint"),
			&awsec2.CfnVPCEndpointProps{VpcId: s.net.vpc.VpcId(), VpcEndpointType: jsii.String("Interface"),
				ServiceName:       awsec2.NewInterfaceVpcEndpointAwsService(&e.service, nil, nil, nil).Name(),
				PrivateDnsEnabled: jsii.Bool(true),
				SubnetIds:         &subnets, SecurityGroupIds: &[]any{group.SecurityGroupId()}})
		s.ways, made = append(s.ways, private), append(made, private)
	}
	if s.props.Stack.OnDelete == settings.OnDeleteKeep {
		for _, r := range made {
			r.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
		}
	}
	log.Print(endpointCost(s.cluster, len(interfaceEndpoints(s.props.Stack.VPCEndpoints)),
		len(s.props.Stack.SubnetIDs)))
}

// endpointCost is the estimate in words. The catalog's bucket is reached through a gateway endpoint, which costs
// nothing and belongs to the route tables of the VPC.
func endpointCost(cluster string, n, subnets int) string {
	const hours = 730
	return fmt.Sprintf("cluster %s: %d interface endpoints in %d subnets cost about %.2f USD a month (%d × %d × %d h × %.2f USD) and 0.01 USD per GB; "+
		"the VPC also needs a gateway endpoint for S3, which is free", cluster, n, subnets,
		float64(n*subnets*hours)*usdPerEndpointHour, n, subnets, hours, usdPerEndpointHour)
}
