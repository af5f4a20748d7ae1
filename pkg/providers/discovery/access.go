package discovery

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"

	"joiner.sh/pkg/nodeclaim/awserrors"
)

// Access tells how a cluster lets in who comes from outside.
type Access struct {
	Cluster
	Status string   // ACTIVE, CREATING, ...
	Mode   string   // of authentication: API, API_AND_CONFIG_MAP or CONFIG_MAP; empty is EKS' old default, CONFIG_MAP
	Public bool     // the API server has a public endpoint
	CIDRs  []string // from which the public endpoint may be reached

	Private  bool // the API server has a private endpoint
	IPv6     bool // services have addresses of IPv6
	AutoMode bool // EKS Auto Mode is on
}

// DescribeAccess asks EKS how to get into the cluster; found is false when there is no such cluster in the region.
func DescribeAccess(ctx context.Context, c *eks.Client, name string) (a Access, found bool, err error) {
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if awserrors.CodeOf(err) == "ResourceNotFoundException" {
		return Access{}, false, nil
	}
	if err != nil {
		return Access{}, false, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	k := out.Cluster
	if k == nil {
		return Access{}, false, fmt.Errorf("describe cluster %s: the answer is empty", name)
	}
	a = Access{Cluster: clusterOf(k), Status: string(k.Status)}
	if k.AccessConfig != nil {
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
	return a, true, nil
}
