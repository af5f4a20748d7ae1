package awsemulator_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/awsemulator/wire"
	"joiner.sh/infra/local/cloudtest"
)

const account = "111122223333"

// rig is an account that runs, and how to reach it.
type rig struct {
	*awsemulator.Cloud
	url string
	cfg aws.Config
	ec2 *ec2.Client
}

// start runs an account whose instances are running at once unless told otherwise.
func start(t *testing.T, o awsemulator.Options) *rig {
	t.Helper()
	c, url := cloudtest.Start(t, o)
	c.PutInstanceProfile("nodes", "KarpenterNodeRole-demo")
	r := &rig{Cloud: c, url: url}
	r.cfg = r.as("provision", "joiner-demo-provision")
	r.ec2 = ec2.NewFromConfig(r.cfg)
	return r
}

// as is the configuration of SDK clients with the credentials of a role. They do not retry: a test wants the first
// answer.
func (r *rig) as(role, session string) aws.Config {
	return r.with(r.IssueCredentials(role, session, 0))
}

func (r *rig) with(c aws.Credentials) aws.Config {
	return aws.Config{
		Region: "us-west-2", BaseEndpoint: aws.String(r.url), RetryMaxAttempts: 1, HTTPClient: &http.Client{Transport: whole{}},
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return c, nil }),
	}
}

// whole sends each request in one piece. Without retries a test needs that: on a busy machine even the breath that
// the account takes before an answer can be too short for the race between smithy-go and net/http (see serve.go).
type whole struct{}

func (whole) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body == nil {
		return http.DefaultTransport.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(bytes.NewReader(body))
	return http.DefaultTransport.RoundTrip(r)
}

// wantCode fails unless err is an answer of the service with this code.
func wantCode(t *testing.T, err error, code string) {
	t.Helper()
	if f, ok := errors.AsType[*wire.Failure](err); ok && f.Code == code {
		return
	}
	api, ok := errors.AsType[smithy.APIError](err)
	if !ok || api.ErrorCode() != code {
		t.Fatalf("error is %v, want code %s", err, code)
	}
}

func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

// image is the newest AL2023 image for x86_64.
func (r *rig) image(t *testing.T, name string) string {
	t.Helper()
	out := must(r.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{
		Owners: []string{"amazon"}, Filters: []types.Filter{{Name: aws.String("name"), Values: []string{name}}},
	}))(t)
	if len(out.Images) == 0 {
		t.Fatalf("no image %s", name)
	}
	return *out.Images[0].ImageId
}

// template makes a launch template as the product does and returns its name.
func (r *rig) template(t *testing.T, name string) string {
	t.Helper()
	groups := must(r.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{
		Filters: []types.Filter{{Name: aws.String("tag:karpenter.sh/discovery"), Values: []string{"demo"}}},
	}))(t)
	must(r.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{
		LaunchTemplateName: aws.String(name),
		LaunchTemplateData: &types.RequestLaunchTemplateData{
			ImageId:            aws.String(r.image(t, "amazon-eks-node-al2023-x86_64-standard-1.36-v20261109")),
			UserData:           aws.String(base64.StdEncoding.EncodeToString([]byte("hello node"))),
			IamInstanceProfile: &types.LaunchTemplateIamInstanceProfileSpecificationRequest{Name: aws.String("nodes")},
			NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
				{DeviceIndex: aws.Int32(0), Groups: []string{*groups.SecurityGroups[0].GroupId}},
			},
			MetadataOptions: &types.LaunchTemplateInstanceMetadataOptionsRequest{
				HttpTokens: types.LaunchTemplateHttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1),
			},
			TagSpecifications: []types.LaunchTemplateTagSpecificationRequest{
				{ResourceType: "instance", Tags: []types.Tag{tag("from", "template"), tag("team", "a")}},
			},
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: "launch-template", Tags: []types.Tag{tag("eks:eks-cluster-name", "demo")}},
		},
	}))(t)
	return name
}

func tag(k, v string) types.Tag { return types.Tag{Key: aws.String(k), Value: aws.String(v)} }

// subnets by zone.
func (r *rig) subnets(t *testing.T) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, s := range must(r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}))(t).Subnets {
		out[*s.AvailabilityZone] = *s.SubnetId
	}
	return out
}

// fleet is a request for one instance from the template "nodes-v1" of the types given, each in zones a and b.
func (r *rig) fleet(t *testing.T, capacityType string, kinds ...string) *ec2.CreateFleetInput {
	t.Helper()
	subnets := r.subnets(t)
	config := types.FleetLaunchTemplateConfigRequest{
		LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
			LaunchTemplateName: aws.String("nodes-v1"), Version: aws.String("$Latest"),
		},
	}
	for i, kind := range kinds {
		for _, zone := range []string{"us-west-2a", "us-west-2b"} {
			config.Overrides = append(config.Overrides, types.FleetLaunchTemplateOverridesRequest{
				InstanceType: types.InstanceType(kind), SubnetId: aws.String(subnets[zone]),
				AvailabilityZone: aws.String(zone), Priority: aws.Float64(float64(i)),
			})
		}
	}
	return &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{config},
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityType(capacityType),
		},
		SpotOptions:     &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized},
		OnDemandOptions: &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: "instance", Tags: []types.Tag{tag("team", "b"), tag("karpenter.sh/nodepool", "default")}},
		},
	}
}

// launch makes one instance and returns its id.
func (r *rig) launch(t *testing.T, in *ec2.CreateFleetInput) string {
	t.Helper()
	out := must(r.ec2.CreateFleet(t.Context(), in))(t)
	if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 {
		t.Fatalf("fleet gave %v, errors %v, want one instance", out.Instances, out.Errors)
	}
	return out.Instances[0].InstanceIds[0]
}

// next takes one value from a channel that a callback fills.
func next[T any](t *testing.T, from <-chan T) T {
	t.Helper()
	select {
	case v := <-from:
		return v
	case <-time.After(2 * time.Minute):
		t.Fatal("nothing came")
		panic("unreachable")
	}
}
