package stack

import (
	"joiner/pkg/install/preflight"
	"joiner/pkg/settings"
)

// preflightPlan is what the preflight is told that the stack makes.
func preflightPlan(s *joiner, functions []function) preflight.Plan {
	set := s.props.Stack
	all, notices := s.props.reservedByAll(functions)
	p := preflight.Plan{Cluster: s.cluster, Observe: s.props.Functions.Mode == settings.ModeObserve,
		NodeRole: set.NodeRole, NodePolicies: set.NodePolicies, VPC: set.VPCID, Subnets: set.SubnetIDs,
		Reserved: all, ForNotices: notices, ForReservations: set.ReservationConcurrency,
		Deployment: set.Deployment}
	for _, r := range madeNodeRoles(s) {
		p.MadeNodeRoles = append(p.MadeNodeRoles, r.name)
	}
	if set.VPCEndpoints {
		p.Endpoints = set.VPCEndpointServices
	}
	return p
}

// readForPreflight is what the preflight asks: it only reads.
func readForPreflight(s *joiner) []statement {
	out := []statement{
		// knows no resources
		{sid: "ReadConcurrency", actions: []string{"lambda:GetAccountSettings"}, resources: []string{"*"}},
		s.findCluster(),
	}
	if s.net.vpc != nil {
		out = append(out, s.describe("DescribeNetwork", "ec2:DescribeSubnets", "ec2:DescribeRouteTables",
			"ec2:DescribePrefixLists", "ec2:DescribeVpcEndpoints"))
	}
	var roles []string
	for _, r := range madeNodeRoles(s) {
		roles = append(roles, madeRole(s, r.name))
		if path := s.props.Stack.RolePath; path != "/" { // one of that name may be elsewhere
			roles = append(roles, s.arn("iam", "", *s.Account(), "role/"+r.name))
		}
	}
	if name := s.props.Stack.NodeRole; name != "" {
		roles = append(roles, s.arn("iam", "", *s.Account(), "role/"+name))
		out = append(out, statement{sid: "ReadNodeAccess", actions: []string{"eks:DescribeAccessEntry"},
			resources: []string{s.arn("eks", *s.Region(), *s.Account(), "access-entry/"+s.cluster+"/*")}})
	}
	return append(out, statement{sid: "ReadNodeRoles", actions: []string{"iam:GetRole"}, resources: roles})
}
