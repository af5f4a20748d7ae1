package discovery

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/eks"
)

// Cluster is how to reach an EKS cluster.
type Cluster struct {
	Endpoint    string // https URL of the API server
	CABundle    string // base64 of its certificate authority's PEM
	ServiceCIDR string // of IPv4 where there is one, else of IPv6
	Version     string // such as 1.36
	ARN         string
}

// DescribeCluster asks EKS for the cluster. It fails when EKS does not know it or it has no endpoint yet.
func DescribeCluster(ctx context.Context, c *eks.Client, name string) (Cluster, error) {
	out, err := c.DescribeCluster(ctx, &eks.DescribeClusterInput{Name: aws.String(name)})
	if err != nil {
		return Cluster{}, fmt.Errorf("describe cluster %s: %w", name, err)
	}
	k := out.Cluster
	if k == nil || aws.ToString(k.Endpoint) == "" || k.CertificateAuthority == nil {
		return Cluster{}, fmt.Errorf("describe cluster %s: it has no endpoint yet, wait until it is active", name)
	}
	found := Cluster{Endpoint: aws.ToString(k.Endpoint), CABundle: aws.ToString(k.CertificateAuthority.Data),
		Version: aws.ToString(k.Version), ARN: aws.ToString(k.Arn)}
	if n := k.KubernetesNetworkConfig; n != nil {
		found.ServiceCIDR = aws.ToString(n.ServiceIpv4Cidr)
		if found.ServiceCIDR == "" {
			found.ServiceCIDR = aws.ToString(n.ServiceIpv6Cidr)
		}
	}
	return found, nil
}
