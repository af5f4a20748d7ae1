package discovery

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// DescribeAccess asks EKS how to get into the cluster. Its region and where it is called from are the caller's to fill.
func DescribeAccess(ctx context.Context, c *eks.Client, name string) (preflight.Cluster, error) {
	a := preflight.Cluster{Name: name}
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if awserrors.CodeOf(err) == "ResourceNotFoundException" {
		return a, nil
	}
	if err != nil {
		return a, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	k := out.Cluster
	if k == nil {
		return a, fmt.Errorf("describe cluster %s: the answer is empty", name)
	}
	reach := clusterOf(k)
	a.Found, a.Endpoint, a.CABundle, a.ServiceCIDR = true, reach.Endpoint, reach.CABundle, reach.ServiceCIDR
	if a.Status = string(k.Status); k.AccessConfig != nil {
		a.Mode = string(k.AccessConfig.AuthenticationMode)
	}
	if v := k.ResourcesVpcConfig; v != nil {
		a.Public, a.Private, a.CIDRs = v.EndpointPublicAccess, v.EndpointPrivateAccess, v.PublicAccessCidrs
	}
	if n := k.KubernetesNetworkConfig; n != nil {
		a.IPv6 = n.IpFamily == types.IpFamilyIpv6
	}
	if m := k.ComputeConfig; m != nil {
		a.AutoMode = aws.ToBool(m.Enabled)
	}
	return a, nil
}
