package discovery

import (
	"cmp"
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/eks/types"
)

// Cluster tells how to reach an EKS cluster.
type Cluster struct {
	Endpoint    string // https URL of the API server
	CABundle    string // base64 of its certificate authority's PEM
	ServiceCIDR string // of IPv4 where there is one, else of IPv6
}

// DescribeCluster asks EKS for the cluster. It fails when EKS does not know it or it has no endpoint yet.
func DescribeCluster(ctx context.Context, c *eks.Client, name string) (Cluster, error) {
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if err != nil {
		return Cluster{}, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	if out.Cluster == nil {
		return Cluster{}, fmt.Errorf("describe cluster %s: the answer is empty", name)
	}
	found := clusterOf(out.Cluster)
	if found.Endpoint == "" || found.CABundle == "" {
		return Cluster{}, fmt.Errorf("describe cluster %s: it has no endpoint yet, wait until it is active", name)
	}
	return found, nil
}

func clusterOf(k *types.Cluster) Cluster {
	found := Cluster{Endpoint: aws.ToString(k.Endpoint)}
	if k.CertificateAuthority != nil {
		found.CABundle = aws.ToString(k.CertificateAuthority.Data)
	}
	if n := k.KubernetesNetworkConfig; n != nil {
		found.ServiceCIDR = cmp.Or(aws.ToString(n.ServiceIpv4Cidr), aws.ToString(n.ServiceIpv6Cidr))
	}
	return found
}
