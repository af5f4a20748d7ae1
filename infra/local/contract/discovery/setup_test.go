// Package discovery tests pkg/providers/discovery against the emulated account.
package discovery

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/providers/discovery"
)

const (
	bucket   = "demo-catalog"
	nodeRole = "KarpenterNodeRole-demo"
)

// rig is an account with a bucket and a node role, a clock that stands, and the adapter.
type rig struct {
	*awsemulator.Cloud
	cfg    aws.Config
	now    time.Time
	finder *discovery.ClassResolver
}

func start(t *testing.T) *rig {
	t.Helper()
	c, url := cloudtest.Start(t, awsemulator.Options{Selecting: func(awsemulator.Caller) bool { return true }})
	if err := c.PutBucket(bucket); err != nil {
		t.Fatal(err)
	}
	c.PutRole(nodeRole)
	credentials := c.IssueCredentials("joiner-demo-refresh", "test", 0)
	r := &rig{Cloud: c, now: time.Now()}
	r.cfg = aws.Config{
		Region: "us-west-2", BaseEndpoint: aws.String(url),
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return credentials, nil }),
		Retryer: func() aws.Retryer {
			return retry.NewStandard(func(o *retry.StandardOptions) { o.MaxAttempts, o.MaxBackoff = 3, time.Millisecond })
		},
	}
	r.finder = &discovery.ClassResolver{
		EC2: ec2.NewFromConfig(r.cfg), SSM: ssm.NewFromConfig(r.cfg), IAM: iam.NewFromConfig(r.cfg),
		Region: "us-west-2", Cluster: "demo", Version: "1.36", CIDR: "10.100.0.0/16", Now: r.clock,
	}
	return r
}

func (r *rig) clock() time.Time { return r.now }

// store is the store of a process that starts now.
func (r *rig) store() *discovery.CatalogStore {
	return discovery.NewStore(s3.NewFromConfig(r.cfg, func(o *s3.Options) { o.UsePathStyle = true }), bucket, 24*time.Hour, r.clock)
}

func (r *rig) market() *discovery.CatalogRefresher {
	return discovery.NewMarket(r.cfg, r.store(), false, r.clock)
}

// made counts the calls of the actions named since they were counted last.
func (r *rig) made(actions ...string) map[string]int {
	out := map[string]int{}
	counts := r.CallCounts()
	for _, a := range actions {
		if counts[a] > 0 {
			out[a] = counts[a]
		}
	}
	r.ForgetCalls()
	return out
}

// class selects what the account has for the cluster demo.
func class() *awsv1.EC2NodeClass {
	tags := map[string]string{"karpenter.sh/discovery": "demo"}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: "11111111-2222-3333-4444-555555555555", Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: tags}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}},
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			Role:                       nodeRole,
			Tags:                       map[string]string{"team": "a"},
		},
	}
}
