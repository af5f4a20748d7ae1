package iam

import (
	"context"
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/smithy-go"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/infra/local/iam"
	"joiner.sh/infra/local/lambdahost/assembly"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

const (
	account  = "111122223333"
	region   = "us-west-2"
	nodeRole = "KarpenterNodeRole-demo"
	claimUID = "11111111-2222-3333-4444-555555555555"
	token    = claimUID + "-0"
)

// rig is an account with the roles of the stack, enforced, and an administrator to prepare things.
type rig struct {
	*awsemulator.Cloud
	url    string
	bucket string
	stack  *assembly.Assembly
	admin  *ec2.Client

	mu      sync.Mutex
	allowed []iam.Request // what the stack's roles asked for and got
}

// load reads the stack that make local synthesized.
func load(t *testing.T) *assembly.Assembly { return loadFrom(t, "cdk.out") }

// inVPC reads the one that make local synthesized with the functions in a VPC.
func inVPC(t *testing.T) *assembly.Assembly { return loadFrom(t, "cdk.vpc") }

func loadFrom(t *testing.T, folder string) *assembly.Assembly {
	t.Helper()
	a, err := assembly.Load("../../../../.local/"+folder, assembly.Place{Account: account, Region: region})
	if err != nil {
		t.Fatalf("%v; run: make local", err)
	}
	return a
}

func start(t *testing.T, stack *assembly.Assembly) *rig {
	t.Helper()
	policies, err := iam.Of(stack.Roles)
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{stack: stack, bucket: stack.Buckets[0].Name}
	r.Cloud, r.url = cloudtest.Start(t, awsemulator.Options{Region: region, Account: account, ClusterName: "demo", ShutdownFor: time.Hour,
		Invoke: func(context.Context, awsemulator.InvokeRequest) awsemulator.InvokeResponse {
			return awsemulator.InvokeResponse{}
		},
		Authorize: func(a awsemulator.Access) error {
			if strings.HasSuffix(a.Caller.Role, ":role/admin") {
				return nil
			}
			ask := iam.Request{Role: a.Caller.Role, Action: a.Action, Resource: a.Resource, Keys: a.Keys}
			_, err := policies.Decide(ask)
			if err == nil {
				r.mu.Lock()
				r.allowed = append(r.allowed, ask)
				r.mu.Unlock()
			}
			return err
		}})
	for _, role := range stack.Roles {
		r.PutRole(strings.TrimPrefix(role.Path, "/") + role.Name)
	}
	r.PutRole("Admin")
	for _, bucket := range []string{r.bucket, "others"} {
		if err := r.PutBucket(bucket); err != nil {
			t.Fatal(err)
		}
	}
	r.SetCluster("https://127.0.0.1:1", []byte("ca"), "10.100.0.0/16")
	r.PutInstanceProfile("nodes", nodeRole)
	r.admin = ec2.NewFromConfig(r.as("admin", region))
	return r
}

// as is the configuration of clients that sign as a role for a region.
func (r *rig) as(role, region string) aws.Config {
	return r.with(r.IssueCredentials(role, "test", 0), region)
}

func (r *rig) with(keys aws.Credentials, region string) aws.Config {
	return aws.Config{Region: region, BaseEndpoint: aws.String(r.url), RetryMaxAttempts: 4,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })}
}

// of is the configuration of the code of one of the stack's functions.
func (r *rig) of(function string) aws.Config {
	name := "joiner-demo-" + function
	return r.with(r.FunctionCredentials(r.stack.FindFunction(name).RoleARN, name), region)
}

func (r *rig) fleet(function string) *fleet.Fleet {
	return &fleet.Fleet{EC2: ec2.NewFromConfig(r.of(function)), Cluster: "demo", Now: time.Now}
}

func pathStyle(o *s3.Options) { o.UsePathStyle = true }

// order asks for a spot instance of a claim of the cluster demo, with all that a launch can touch.
func (r *rig) order(t *testing.T) launch.Order {
	t.Helper()
	images, err := r.admin.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.36-*"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("images: %v", err)
	}
	subnets, err := r.admin.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	groups, err := r.admin.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{GroupNames: []string{"demo-node"}})
	if err != nil {
		t.Fatal(err)
	}
	s, image := subnets.Subnets[0], *images.Images[0].ImageId
	tags := []launch.Tag{
		{Key: launch.TagNodeClass, Value: "default"}, {Key: launch.TagNodePool, Value: "default"},
		{Key: launch.TagClusterName, Value: "demo"}, {Key: "kubernetes.io/cluster/demo", Value: "owned"},
	}
	return launch.Order{ClaimName: "default-abcde", ClaimUID: claimUID, CapacityType: instancetypes.Spot, Strategy: "price-capacity-optimized", Tags: tags,
		InstanceTags: append(slices.Clone(tags), launch.Tag{Key: launch.TagClaim, Value: "default-abcde"}, launch.Tag{Key: launch.TagClaimUID, Value: claimUID}),
		Templates: []launch.Template{{
			Name: launch.TemplatePrefix("demo") + "1", ImageID: image, InstanceProfile: "nodes", Tenancy: "default", Tags: tags, SpotTags: tags,
			UserData:          base64.StdEncoding.EncodeToString([]byte("hello node")),
			NetworkInterfaces: []launch.NetworkInterface{{SecurityGroupIDs: []string{*groups.SecurityGroups[0].GroupId}}},
			BlockDevices:      []launch.BlockDevice{{Device: "/dev/xvdb", SizeGiB: 20, SnapshotID: "snap-0123456789abcdef0"}},
			Metadata:          launch.Metadata{HTTPEndpoint: "enabled", HTTPProtocol: "disabled", HopLimit: 1, HTTPTokens: "required"},
			Reservation:       launch.ReservationSelection{Preference: "none"},
			Overrides: []launch.Override{{SubnetID: *s.SubnetId, ImageID: image, Price: 0.1,
				OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot, Type: "m5.large", Zone: *s.AvailabilityZone}}},
		}}}
}

// launched is an instance of the cluster demo that provision launched.
func (r *rig) launched(t *testing.T) string {
	t.Helper()
	i, _, err := r.fleet("provision").LaunchInstances(t.Context(), r.order(t), token)
	if err != nil {
		t.Fatal(err)
	}
	return i.ID
}

// handmade is an instance that somebody else launched, with these tags.
func (r *rig) handmade(t *testing.T, tags ...string) string {
	t.Helper()
	o := r.order(t)
	in := &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
		ImageId: aws.String(o.Templates[0].ImageID), SubnetId: aws.String(o.Templates[0].Overrides[0].SubnetID)}
	var list []types.Tag
	for i := 0; i < len(tags); i += 2 {
		list = append(list, types.Tag{Key: aws.String(tags[i]), Value: aws.String(tags[i+1])})
	}
	if list != nil {
		in.TagSpecifications = []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: list}}
	}
	out, err := r.admin.RunInstances(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return *out.Instances[0].InstanceId
}

// isDenied tells a refusal by IAM, in the words of any service, also as the error of a fleet.
func isDenied(err error) bool {
	codes := []string{"UnauthorizedOperation", "AccessDenied", "AccessDeniedException"}
	if f, ok := errors.AsType[*fleet.LaunchError](err); ok {
		return slices.Contains(codes, f.Code)
	}
	if no, ok := errors.AsType[*launch.RefusedError](err); ok {
		return slices.Contains(codes, no.Code)
	}
	if _, ok := errors.AsType[*deniedRole](err); ok {
		return true
	}
	api, ok := errors.AsType[smithy.APIError](err)
	return ok && slices.Contains(codes, api.ErrorCode())
}
