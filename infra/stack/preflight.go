package stack

import (
	"slices"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/settings"
)

// sizedLike is the function of which the preflight reads how much memory it has: the others that read the cluster have
// as much.
const sizedLike = "provision"

// preflightPlan returns what the preflight is told that the stack makes.
func preflightPlan(s scope, functions []function) preflight.StackPlan {
	set := s.props.Stack
	all, notices := s.props.reservedByAll(functions)
	p := preflight.StackPlan{Cluster: s.cluster, Observe: s.props.Functions.Mode == settings.ModeObserve,
		NodeRole: set.NodeRole, WindowsNodeRole: set.WindowsNodeRole, NodePolicies: set.NodePolicies,
		VPC: set.VPCID, Subnets: set.SubnetIDs, Endpoints: set.VPCEndpoints,
		Reserved: all, ForNotices: notices, ForReservations: s.props.ReservationConcurrency,
		GivenRegion: set.Region, Push: s.props.Functions.Trigger == settings.TriggerPush,
		FunctionMemory: set.FunctionMemory, MemoryLike: s.functionName(sizedLike), Deployment: set.Deployment}
	p.ZonalShift = s.props.Functions.ZonalShift && len(p.Endpoints) > 0
	for _, r := range madeNodeRoles(s) {
		p.MadeNodeRoles = append(p.MadeNodeRoles, r.name)
	}
	return p
}

// preflightAllows returns what the preflight asks: it only reads.
func preflightAllows(p permissions) []statement {
	out := []statement{
		// knows no resources
		{sid: "ReadConcurrency", actions: []string{"lambda:GetAccountSettings"}, resources: []string{"*"}},
		p.findCluster(),
		p.describe("CountNodes", "ec2:DescribeInstances"),
	}
	// how much memory there is, and in a rollback what the functions were told of the cluster
	out = append(out, statement{sid: "ReadMemory", actions: []string{"lambda:GetFunctionConfiguration"},
		resources: []string{p.arn("lambda", *p.Region(), *p.Account(), "function:"+p.functionName(sizedLike))}})
	if p.inVPC {
		out = append(out, p.describe("DescribeNetwork", "ec2:DescribeSubnets", "ec2:DescribeRouteTables",
			"ec2:DescribePrefixLists", "ec2:DescribeVpcEndpoints", "ec2:DescribeVpcEndpointServices"))
	}
	var roles []string
	for _, r := range madeNodeRoles(p.scope) {
		roles = append(roles, madeRole(p.scope, r.name))
		if path := p.props.Stack.RolePath; path != "/" { // one of that name may be elsewhere
			roles = append(roles, p.arn("iam", "", *p.Account(), "role/"+r.name))
		}
	}
	given := slices.DeleteFunc([]string{p.props.Stack.NodeRole, p.props.Stack.WindowsNodeRole},
		func(name string) bool { return name == "" })
	for _, name := range given { // one that has a path is told of
		roles = append(roles, p.arn("iam", "", *p.Account(), "role/"+name), p.arn("iam", "", *p.Account(), "role/*/"+name))
	}
	if len(given) > 0 {
		out = append(out, statement{sid: "ReadNodeAccess", actions: []string{"eks:DescribeAccessEntry"},
			resources: []string{p.arn("eks", *p.Region(), *p.Account(), "access-entry/"+p.cluster+"/*")}})
	}
	return append(out, statement{sid: "ReadNodeRoles", actions: []string{"iam:GetRole"}, resources: roles})
}
