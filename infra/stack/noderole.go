package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awseks"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// addNodeRole makes the role of the nodes and lets them join (spec: node role and access entry of type EC2_LINUX). A role that the
// user names is left alone, with its access entry: a cluster that moves here from Karpenter has both.
func (s *joiner) addNodeRole() {
	if name := s.props.Stack.NodeRole; name != "" {
		s.nodeRole = s.arn("iam", "", *s.Account(), "role/"+name)
		return
	}
	role := awsiam.NewRole(s.Stack, jsii.String("NodeRole"), &awsiam.RoleProps{
		RoleName:    jsii.String("KarpenterNodeRole-" + s.cluster),
		Description: jsii.String("Nodes that Joiner launches for cluster " + s.cluster),
		AssumedBy:   awsiam.NewServicePrincipal(jsii.String("ec2.amazonaws.com"), nil),
		ManagedPolicies: &[]awsiam.IManagedPolicy{
			managed("AmazonEKSWorkerNodePolicy"),
			managed("AmazonEC2ContainerRegistryPullOnly"),
			managed("AmazonEKS_CNI_Policy"),
			managed("AmazonSSMManagedInstanceCore"),
		},
	})
	entry := awseks.NewCfnAccessEntry(s.Stack, jsii.String("NodeAccess"), &awseks.CfnAccessEntryProps{
		ClusterName:  &s.cluster,
		PrincipalArn: role.RoleArn(),
		Type:         jsii.String("EC2_LINUX"),
	})
	s.entries = append(s.entries, entry)
	s.nodeRole = *role.RoleArn()
}

func managed(name string) awsiam.IManagedPolicy {
	return awsiam.ManagedPolicy_FromAwsManagedPolicyName(&name)
}
