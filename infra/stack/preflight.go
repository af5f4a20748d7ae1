package stack

import (
	"joiner/pkg/install/preflight"
	"joiner/pkg/settings"
)

// preflightPlan is what the preflight is told that the stack makes.
func (s *joiner) preflightPlan() preflight.Plan {
	set := s.props.Stack
	all, notices := s.reserved()
	p := preflight.Plan{Cluster: s.cluster, Observe: s.props.Functions.Mode == settings.ModeObserve,
		NodeRole: set.NodeRole, NodePolicies: set.NodePolicies, VPC: set.VPCID, Subnets: set.SubnetIDs,
		Reserved: all, ForNotices: notices}
	for _, r := range s.madeNodeRoles() {
		p.MadeNodeRoles = append(p.MadeNodeRoles, r.name)
	}
	if set.VPCEndpoints {
		p.Endpoints = set.VPCEndpointServices
	}
	return p
}

// readForPreflight is what the preflight asks beside EKS: it only reads.
func (s *joiner) readForPreflight() []statement {
	out := []statement{
		// knows no resources
		{sid: "ReadConcurrency", actions: []string{"lambda:GetAccountSettings"}, resources: []string{"*"}},
	}
	var roles []string
	for _, r := range s.madeNodeRoles() {
		roles = append(roles, s.arn("iam", "", *s.Account(), "role/"+r.name))
	}
	if name := s.props.Stack.NodeRole; name != "" {
		roles = append(roles, s.arn("iam", "", *s.Account(), "role/"+name))
		out = append(out, statement{sid: "ReadNodeAccess", actions: []string{"eks:DescribeAccessEntry"},
			resources: []string{s.arn("eks", *s.Region(), *s.Account(), "access-entry/"+s.cluster+"/*")}})
	}
	return append(out, statement{sid: "ReadNodeRoles", actions: []string{"iam:GetRole"}, resources: roles},
		s.describe("DescribeNetwork", "ec2:DescribeVpcEndpoints", "ec2:DescribeSubnets"))
}
