package app

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/aws/arn"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/kube"
)

// clusterFacts holds what the stack wrote down of the cluster, and what was found out since.
type clusterFacts struct {
	mu    sync.Mutex
	facts launch.Cluster
}

func (c *clusterFacts) read() launch.Cluster {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.facts
}

func (c *clusterFacts) change(to func(*launch.Cluster)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	to(&c.facts)
}

// connectCluster makes the client for the API server that the stack names. It asks nobody.
func (a *App) connectCluster() error {
	if a.set.ClusterEndpoint == "" || a.set.ClusterCABundle == "" {
		return fmt.Errorf("find cluster %s: CLUSTER_ENDPOINT and CLUSTER_CA_BUNDLE are not both set; the stack sets them, so deploy it again",
			a.set.ClusterName)
	}
	ca, err := base64.StdEncoding.DecodeString(a.set.ClusterCABundle)
	if err != nil {
		return fmt.Errorf("decode certificate authority of cluster %s: %w", a.set.ClusterName, err)
	}
	a.cluster.facts = launch.Cluster{Name: a.set.ClusterName, Endpoint: a.set.ClusterEndpoint,
		CABundle: a.set.ClusterCABundle, ServiceCIDR: a.set.ServiceCIDR, Region: a.aws.Region}
	a.findAuthority = authorities(a).ReadAuthority // what refresh found out
	a.kube, err = kube.New(kube.Config{Endpoint: a.set.ClusterEndpoint, CA: ca, UserAgent: version.UserAgent("joiner"),
		Token: kube.EKSToken(sts.NewFromConfig(a.aws), a.set.ClusterName, time.Now), Now: time.Now,
		Authority: a.renewAuthority, Wrap: a.throttled.count})
	if err == nil {
		a.cache = a.kube.NewClusterCache()
		useCheckpoints(a)
	}
	return err
}

// renewAuthority finds the certificate authority that EKS signs with today, where the one that the stack wrote down is
// believed no more.
func (a *App) renewAuthority(ctx context.Context) ([]byte, error) {
	bundle, err := a.findAuthority(ctx)
	if err != nil || bundle == "" {
		return nil, err
	}
	ca, err := base64.StdEncoding.DecodeString(bundle)
	if err != nil {
		return nil, fmt.Errorf("decode certificate authority of cluster %s: %w", a.set.ClusterName, err)
	}
	a.log.Warn("the cluster has another certificate authority than the stack wrote down; deploy the stack again")
	a.cluster.change(func(c *launch.Cluster) { c.CABundle = bundle })
	return ca, nil
}

// describeAuthority asks EKS, and tells the other functions, which may not. Only refresh does, and it runs alone.
func describeAuthority(ctx context.Context, a *App) (string, error) {
	found, err := discovery.DescribeCluster(ctx, eks.NewFromConfig(a.aws), a.set.ClusterName)
	if err != nil {
		return "", err
	}
	if found.CABundle == a.cluster.read().CABundle {
		return "", nil
	}
	return found.CABundle, authorities(a).PutAuthority(ctx, found.CABundle)
}

func authorities(a *App) discovery.AuthorityStore {
	return discovery.AuthorityStore{S3: s3.NewFromConfig(a.aws, pathStyle), Bucket: a.set.CatalogBucket}
}

// clusterARN returns the ARN of the cluster in the account of the function which runs.
func clusterARN(ctx context.Context, cluster string) (string, error) {
	lc, ok := lambdacontext.FromContext(ctx)
	if !ok {
		return "", errors.New("make the ARN of the cluster: outside of Lambda the account is not known")
	}
	own, err := arn.Parse(lc.InvokedFunctionArn)
	if err != nil {
		return "", fmt.Errorf("make the ARN of the cluster: %s is the ARN of no function", lc.InvokedFunctionArn)
	}
	own.Service, own.Resource = "eks", "cluster/"+cluster
	return own.String(), nil
}

// clusterInfoNow is clusterInfo with the version that the API server has now: a process lives for hours, in which the
// control plane may be upgraded.
func clusterInfoNow(ctx context.Context, a *App) (launch.Cluster, error) {
	a.cluster.change(func(c *launch.Cluster) { c.Version = "" })
	return a.clusterInfo(ctx)
}

// clusterInfo returns the facts of the cluster that a node needs. What the stack did not write down the API server is
// asked for once in a process. A cluster without DNS leaves that to the kubelet.
func (a *App) clusterInfo(ctx context.Context) (launch.Cluster, error) {
	info := a.cluster.read()
	if info.Version == "" {
		version, err := a.kube.ReadVersion(ctx)
		if err != nil {
			return a.cluster.read(), err
		}
		a.cluster.change(func(c *launch.Cluster) { c.Version = version })
	}
	if info.DNSAddress == "" {
		dns, err := a.kube.ReadDNSAddress(ctx)
		if err != nil {
			return a.cluster.read(), err
		}
		a.cluster.change(func(c *launch.Cluster) { c.DNSAddress = dns })
	}
	return a.cluster.read(), nil
}
