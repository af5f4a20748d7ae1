package discovery

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"

	"joiner/pkg/nodeclaim/awserrors"
)

// Access is how a cluster lets in who comes from outside.
type Access struct {
	Cluster
	Status string   // ACTIVE, CREATING, ...
	Mode   string   // of authentication: API, API_AND_CONFIG_MAP or CONFIG_MAP; empty is EKS' old default, CONFIG_MAP
	Public bool     // the API server has a public endpoint
	CIDRs  []string // from which the public endpoint may be reached
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
		a.Public, a.CIDRs = v.EndpointPublicAccess, v.PublicAccessCidrs
	}
	return a, true, nil
}
