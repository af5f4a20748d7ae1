package conformance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	"github.com/aws/smithy-go"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
)

const (
	region = "us-west-2"
	role   = "KarpenterNodeRole-demo"
	bucket = "demo-catalog"
)

// account is an AWS account behind an endpoint, with what the calls need: a subnet of zone a, a security group, an
// image, a role, a bucket.
type account struct {
	t *testing.T

	ec2     *ec2.Client
	iam     *iam.Client
	ssm     *ssm.Client
	eks     *eks.Client
	pricing *pricing.Client
	lambda  *lambda.Client
	s3      *s3.Client
	sts     *sts.Client
	plans   *savingsplans.Client

	subnet, group, image string
}

func newAccount(t *testing.T, url string, keys aws.Credentials) *account {
	cfg := aws.Config{Region: region, BaseEndpoint: aws.String(url), RetryMaxAttempts: 1, HTTPClient: http.DefaultClient,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })}
	return &account{t: t, ec2: ec2.NewFromConfig(cfg), iam: iam.NewFromConfig(cfg), ssm: ssm.NewFromConfig(cfg), eks: eks.NewFromConfig(cfg),
		pricing: pricing.NewFromConfig(cfg, func(o *pricing.Options) { o.Region = "us-east-1" }), lambda: lambda.NewFromConfig(cfg),
		s3: s3.NewFromConfig(cfg, func(o *s3.Options) { o.UsePathStyle = true }), sts: sts.NewFromConfig(cfg), plans: savingsplans.NewFromConfig(cfg)}
}

// emulator is the account of the local environment.
func emulator(t *testing.T) *account {
	c, url := cloudtest.Start(t, awsemulator.Options{Region: region, ClusterName: "demo", ShutdownFor: time.Hour, StopFor: time.Millisecond})
	c.PutRole(role)
	if err := c.PutBucket(bucket); err != nil {
		t.Fatal(err)
	}
	c.SetCluster("https://127.0.0.1:1", []byte("certificate"), "10.100.0.0/16")
	c.PutImage("golden-1", "x86_64", map[string]string{"use": "nodes"})
	a := newAccount(t, url, c.IssueCredentials("admin", "test", 0))
	a.look()
	return a
}

// moto is a server of the python given, in a process that ends with the test.
func moto(t *testing.T, python string) *account {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), python, "-m", "moto.server", "-H", "127.0.0.1", "-p", port)
	log, err := os.Create(t.TempDir() + "/moto.log")
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		t.Fatalf("start moto: %v; run make conformance, which installs it", err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
	})
	a := newAccount(t, "http://127.0.0.1:"+port, aws.Credentials{AccessKeyID: "test", SecretAccessKey: "test"})
	for try := 0; ; try++ {
		_, err := a.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
		if err == nil {
			break
		}
		if try == 2400 {
			t.Fatalf("moto does not answer: %v", err)
		}
		time.Sleep(100 * time.Millisecond)
	}
	a.furnish()
	a.look()
	return a
}

// furnish makes in moto what the emulated account has from the start.
func (a *account) furnish() {
	ctx := a.t.Context()
	tags := func(kind types.ResourceType, more ...types.Tag) []types.TagSpecification {
		return []types.TagSpecification{{ResourceType: kind, Tags: append([]types.Tag{tag("karpenter.sh/discovery", "demo")}, more...)}}
	}
	vpcs, err := a.ec2.DescribeVpcs(ctx, &ec2.DescribeVpcsInput{})
	a.must(err)
	subnets, err := a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{})
	a.must(err)
	for _, s := range subnets.Subnets {
		_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{*s.SubnetId}, Tags: []types.Tag{tag("karpenter.sh/discovery", "demo"), tag("Name", "demo-private-"+*s.AvailabilityZone)}})
		a.must(err)
	}
	_, err = a.ec2.CreateSecurityGroup(ctx, &ec2.CreateSecurityGroupInput{GroupName: aws.String("demo-node"), Description: aws.String("nodes"), VpcId: vpcs.Vpcs[0].VpcId,
		TagSpecifications: tags(types.ResourceTypeSecurityGroup, tag("Name", "demo-node"))})
	a.must(err)
	image, err := a.ec2.RegisterImage(ctx, &ec2.RegisterImageInput{Name: aws.String("golden-1"), Architecture: types.ArchitectureValuesX8664,
		VirtualizationType: aws.String("hvm"), RootDeviceName: aws.String("/dev/xvda")})
	a.must(err)
	_, err = a.ec2.CreateTags(ctx, &ec2.CreateTagsInput{Resources: []string{*image.ImageId}, Tags: []types.Tag{tag("use", "nodes")}})
	a.must(err)
	_, err = a.iam.CreateRole(ctx, &iam.CreateRoleInput{RoleName: aws.String(role), AssumeRolePolicyDocument: aws.String("{}")})
	a.must(err)
	_, err = a.s3.CreateBucket(ctx, &s3.CreateBucketInput{Bucket: aws.String(bucket), CreateBucketConfiguration: bucketIn(region)})
	a.must(err)
	_, err = a.eks.CreateCluster(ctx, &eks.CreateClusterInput{Name: aws.String("demo"), RoleArn: aws.String("arn:aws:iam::123456789012:role/eks"), ResourcesVpcConfig: vpcConfig(), Version: aws.String("1.36")})
	a.must(err)
}

// look finds what the calls name.
func (a *account) look() {
	ctx := a.t.Context()
	subnets, err := a.ec2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{filter("availability-zone", region+"a")}})
	a.must(err)
	groups, err := a.ec2.DescribeSecurityGroups(ctx, &ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{filter("group-name", "demo-node")}})
	a.must(err)
	images, err := a.ec2.DescribeImages(ctx, &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: []types.Filter{filter("name", "golden-1")}})
	a.must(err)
	if len(subnets.Subnets) != 1 || len(groups.SecurityGroups) != 1 || len(images.Images) != 1 {
		a.t.Fatalf("%d subnets, %d groups, %d images", len(subnets.Subnets), len(groups.SecurityGroups), len(images.Images))
	}
	a.subnet, a.group, a.image = *subnets.Subnets[0].SubnetId, *groups.SecurityGroups[0].GroupId, *images.Images[0].ImageId
}

func (a *account) must(err error) {
	a.t.Helper()
	if err != nil {
		a.t.Fatal(err)
	}
}

// say is an answer as text: the code of an error, or the value as JSON with names for ids.
func (a *account) say(v any, err error) string {
	if api, ok := errors.AsType[smithy.APIError](err); ok {
		return "error " + api.ErrorCode()
	}
	if err != nil {
		return "no answer that the client understands"
	}
	b, err := json.Marshal(v)
	a.must(err)
	text := string(b)
	for id, name := range map[string]string{a.subnet: "SUBNET-A", a.group: "GROUP", a.image: "IMAGE"} {
		text = strings.ReplaceAll(text, id, name)
	}
	return regexp.MustCompile(`\b(i|lt|fleet|subnet|sg|ami|r)-[0-9a-f-]{6,}`).ReplaceAllString(text, "$1-ID")
}

func tag(key, value string) types.Tag {
	return types.Tag{Key: aws.String(key), Value: aws.String(value)}
}

func filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

// sorted is the list of what of gives for each item.
func sorted[T any](list []T, of func(T) string) []string {
	out := []string{}
	for _, v := range list {
		out = append(out, of(v))
	}
	slices.Sort(out)
	return out
}

func text(format string, args ...any) string { return fmt.Sprintf(format, args...) }
