package stack

import (
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/settings"
)

// nodeRole is a role of nodes that the stack makes.
type nodeRole struct{ id, name, entryType string }

// madeNodeRoles are the roles that the stack makes in mode act. A role that the user names is left alone, with its
// access entry: a cluster that moves here from Karpenter has both. An access entry has one type, so Windows nodes have
// a role of their own.
func madeNodeRoles(s scope) (roles []nodeRole) {
	if s.props.Stack.NodeRole == "" {
		roles = append(roles, nodeRole{"Node", s.names.NodeRole(), "EC2_LINUX"})
	}
	if s.props.Stack.WindowsNodes {
		roles = append(roles, nodeRole{"WindowsNode", s.names.WindowsNodeRole(), "EC2_WINDOWS"})
	}
	return roles
}

// madeRole is the ARN of a role that the stack makes in mode act.
func madeRole(s scope, name string) string {
	return s.arn("iam", "", *s.Account(), "role"+s.props.Stack.RolePath+name)
}

// addNodeRoles makes the roles of the nodes and lets them join. In
// mode observe there is nobody to join, and the names may be those of a Karpenter that runs.
func (s *joiner) addNodeRoles() {
	if name := s.props.Stack.NodeRole; name != "" {
		s.nodeRoles = append(s.nodeRoles, s.arn("iam", "", *s.Account(), "role/"+name))
	}
	for _, r := range madeNodeRoles(s.scope) {
		if s.props.Functions.Mode == settings.ModeObserve {
			s.nodeRoles = append(s.nodeRoles, madeRole(s.scope, r.name))
		} else {
			s.addNodeRole(r.id, r.name, r.entryType)
		}
	}
	if name := s.props.Stack.WindowsNodeRole; name != "" {
		s.nodeRoles = append(s.nodeRoles, s.arn("iam", "", *s.Account(), "role/"+name))
	}
	for _, role := range s.props.Stack.NodeRoles {
		if !strings.HasPrefix(role, "arn:") {
			role = s.arn("iam", "", *s.Account(), "role/"+role)
		}
		s.nodeRoles = append(s.nodeRoles, role)
	}
}

// addNodeRole makes one role with an instance profile of its name, for EC2NodeClasses that name a profile instead of a
// role.
func (s *joiner) addNodeRole(id, name, entryType string) {
	policies := []awsiam.IManagedPolicy{
		managedPolicy("AmazonEKSWorkerNodePolicy"),
		managedPolicy("AmazonEC2ContainerRegistryPullOnly"),
		managedPolicy("AmazonEKS_CNI_Policy"),
		managedPolicy("AmazonSSMManagedInstanceCore"),
	}
	for _, p := range s.props.Stack.NodePolicies {
		if strings.HasPrefix(p, "arn:") {
			policies = append(policies, awsiam.ManagedPolicy_FromManagedPolicyArn(s.Stack,
				jsii.String(id+p[strings.LastIndex(p, "/")+1:]), &p))
		} else {
			policies = append(policies, managedPolicy(p))
		}
	}
	role := awsiam.NewRole(s.Stack, jsii.String(id+"Role"), &awsiam.RoleProps{
		RoleName:        &name,
		Description:     jsii.String("Nodes that Joiner launches for cluster " + s.cluster),
		AssumedBy:       awsiam.NewServicePrincipal(jsii.String("ec2."+*s.UrlSuffix()), nil),
		Path:            s.rolePath(),
		ManagedPolicies: &policies,
	})
	profile := awsiam.NewInstanceProfile(s.Stack, jsii.String(id+"Profile"),
		&awsiam.InstanceProfileProps{InstanceProfileName: &name, Role: role, Path: s.rolePath()})
	entry := awseks.NewCfnAccessEntry(s.Stack, jsii.String(id+"Access"), &awseks.CfnAccessEntryProps{
		ClusterName:  &s.cluster,
		PrincipalArn: role.RoleArn(),
		Type:         &entryType,
	})
	s.entries = append(s.entries, entry)
	s.nodeRoles = append(s.nodeRoles, *role.RoleArn())
	s.madeRoles = append(s.madeRoles, name)
	for _, r := range []awscdk.CfnResource{resourceOf(role), resourceOf(profile), entry} {
		keepIdentity(s.scope, r)
		s.joining = append(s.joining, r)
	}
}

// keepIdentity has what nodes belong to the cluster by outlive the stack, unless the stack is to take its nodes with
// it. Without it kubelets are refused, and IAM deletes no role that an instance profile of a class still holds. What is
// replaced stays in any case, since nodes that run go by it. What a failed deployment made goes again.
func keepIdentity(s scope, r awscdk.CfnResource) {
	if s.props.Stack.OnDelete == settings.OnDeleteDrain {
		r.CfnOptions().SetDeletionPolicy(awscdk.CfnDeletionPolicy_DELETE)
		r.CfnOptions().SetUpdateReplacePolicy(awscdk.CfnDeletionPolicy_RETAIN)
		return
	}
	r.ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE, nil)
}

func managedPolicy(name string) awsiam.IManagedPolicy {
	return awsiam.ManagedPolicy_FromAwsManagedPolicyName(&name)
}
