package iam

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	iamtypes "github.com/aws/aws-sdk-go-v2/service/iam/types"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/providers/invoke"
)

func TestInstancesOfOthersCannotBeTerminated(t *testing.T) {
	r := start(t, load(t))
	ours := r.launched(t)
	for _, function := range []string{"provision", "disrupt", "refresh", "spotinterruption", "reservationinterruption", "rebalance",
		"scheduledchange", "statechange", "preflight", "setup", "wake"} {
		if err := r.fleet(function).TerminateInstances(t.Context(), []string{ours}); !isDenied(err) {
			t.Errorf("%s: %v, want a refusal", function, err)
		}
	}
	for name, id := range map[string]string{
		"another cluster's":      r.handmade(t, "kubernetes.io/cluster/other", "owned", "karpenter.sh/nodepool", "default"),
		"nobody's":               r.handmade(t),
		"the cluster's, by hand": r.handmade(t, "kubernetes.io/cluster/demo", "owned"),
		"shared":                 r.handmade(t, "kubernetes.io/cluster/demo", "shared", "karpenter.sh/nodepool", "default"),
	} {
		if err := r.fleet("lifecycle").TerminateInstances(t.Context(), []string{ours, id}); !isDenied(err) {
			t.Errorf("%s instance: %v, want a refusal", name, err)
		}
	}
	for _, i := range r.DescribedInstances() { // those of others keep ours from nothing
		if runs := i.State == "running" || i.State == "pending"; runs == (i.ID == ours) {
			t.Errorf("instance %s is %s, and ours is %s", i.ID, i.State, ours)
		}
	}
}

func TestAnotherRoleCannotBePassed(t *testing.T) {
	r := start(t, load(t))
	r.PutInstanceProfile("admins", "Admin")
	o := r.order(t)
	o.Templates[0].InstanceProfile = "admins"
	if _, _, err := r.fleet("provision").LaunchInstances(t.Context(), o, token); !isDenied(err) {
		t.Errorf("a launch with another role: %v, want a refusal", err)
	}
	c := class()
	c.Spec.Role = "Admin"
	found := r.finder("refresh").FindAll(t.Context(), c)
	if refused, ok := errors.AsType[*nodeclass.ProfileError](found.ProfileErr); !ok || refused.Reason != nodeclass.ReasonRoleNotAllowed {
		t.Errorf("a class with another role: %v, want %s", found.ProfileErr, nodeclass.ReasonRoleNotAllowed)
	}
	if n := len(r.DescribedInstances()); n != 0 {
		t.Errorf("%d instances were launched", n)
	}
}

// lifecycle stops and provision starts instances of the cluster's NodePools, and no other function either.
func TestOtherInstancesAreNotStoppedNorStarted(t *testing.T) {
	r := start(t, load(t))
	ours, offering := r.launched(t), instancetypes.OfferingKey{}
	for name, id := range map[string]string{
		"another cluster's":      r.handmade(t, "kubernetes.io/cluster/other", "owned", "karpenter.sh/nodepool", "default"),
		"nobody's":               r.handmade(t),
		"the cluster's, by hand": r.handmade(t, "kubernetes.io/cluster/demo", "owned"),
		"shared":                 r.handmade(t, "kubernetes.io/cluster/demo", "shared", "karpenter.sh/nodepool", "default"),
	} {
		if err := r.fleet("lifecycle").StopInstances(t.Context(), []string{id}); !isDenied(err) {
			t.Errorf("stop of %s instance: %v, want a refusal", name, err)
		}
		if err := r.fleet("provision").StartInstance(t.Context(), id, offering); !isDenied(err) {
			t.Errorf("start of %s instance: %v, want a refusal", name, err)
		}
	}
	for _, function := range []string{"provision", "lifecycle", "disrupt", "refresh", "spotinterruption", "reservationinterruption", "rebalance",
		"scheduledchange", "statechange", "preflight", "setup", "wake"} {
		if err := r.fleet(function).StopInstances(t.Context(), []string{ours}); function != "lifecycle" && !isDenied(err) {
			t.Errorf("stop by %s: %v, want a refusal", function, err)
		}
		if err := r.fleet(function).StartInstance(t.Context(), ours, offering); function != "provision" && !isDenied(err) {
			t.Errorf("start by %s: %v, want a refusal", function, err)
		}
	}
}

func TestAnUntaggedLaunchIsDenied(t *testing.T) {
	for _, tag := range []string{launch.TagNodePool, launch.TagClusterName, "kubernetes.io/cluster/demo"} {
		for part, drop := range map[string]func(o *launch.Order){
			"fleet and volume": func(o *launch.Order) { o.Tags = without(o.Tags, tag) },
			"instance":         func(o *launch.Order) { o.InstanceTags = without(o.InstanceTags, tag) },
			"template and network interface": func(o *launch.Order) {
				o.Templates[0].Tags = without(o.Templates[0].Tags, tag)
			},
			"spot request": func(o *launch.Order) { o.Templates[0].SpotTags = without(o.Templates[0].SpotTags, tag) },
		} {
			t.Run(part+" without "+tag, func(t *testing.T) {
				t.Parallel()
				r := start(t, load(t))
				o := r.order(t)
				drop(&o)
				if _, _, err := r.fleet("provision").LaunchInstances(t.Context(), o, token); !isDenied(err) || len(r.DescribedInstances()) != 0 {
					t.Errorf("%v and %d instances, want a refusal and none", err, len(r.DescribedInstances()))
				}
			})
		}
	}
}

func TestLaunchesOutsideTheClusterAreDenied(t *testing.T) {
	r := start(t, load(t))
	o := r.order(t)
	for i, tag := range o.Templates[0].Tags {
		if tag.Key == "kubernetes.io/cluster/demo" {
			o.Templates[0].Tags[i].Key = "kubernetes.io/cluster/other"
		}
	}
	f := r.fleet("provision")
	f.EC2 = r.admin
	if _, _, err := f.LaunchInstances(t.Context(), o, token); err != nil { // the template of another cluster exists now
		t.Fatal(err)
	}
	mine := r.order(t)
	if _, _, err := r.fleet("provision").LaunchInstances(t.Context(), mine, token+"x"); !isDenied(err) {
		t.Errorf("a launch from the template of another cluster: %v, want a refusal", err)
	}
	for _, function := range []string{"lifecycle", "disrupt", "refresh", "spotinterruption", "reservationinterruption", "rebalance",
		"scheduledchange", "statechange", "preflight", "setup", "wake"} {
		if _, _, err := r.fleet(function).LaunchInstances(t.Context(), mine, token+"y"); !isDenied(err) {
			t.Errorf("a launch by %s: %v, want a refusal", function, err)
		}
	}
	_, err := ec2.NewFromConfig(r.of("provision")).RunInstances(t.Context(), &ec2.RunInstancesInput{MinCount: aws.Int32(1), MaxCount: aws.Int32(1),
		InstanceType: "m5.large", ImageId: aws.String(mine.Templates[0].ImageID), SubnetId: aws.String(mine.Templates[0].Overrides[0].SubnetID)})
	if !isDenied(err) {
		t.Errorf("RunInstances without a tag: %v, want a refusal", err)
	}
	if n := len(r.DescribedInstances()); n != 1 {
		t.Errorf("%d instances, want the administrator's alone", n)
	}
}

func TestTagsCannotBeUsedToTakeThingsOver(t *testing.T) {
	r := start(t, load(t))
	ours, others := r.launched(t), r.handmade(t)
	client := ec2.NewFromConfig(r.of("lifecycle"))
	tag := func(id, k, v string) error {
		_, err := client.CreateTags(t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{{Key: aws.String(k), Value: aws.String(v)}}})
		return err
	}
	for name, err := range map[string]error{
		"an instance of others":    tag(others, "Name", "mine"),
		"an owner for others":      tag(others, "kubernetes.io/cluster/demo", "owned"),
		"another owner for ours":   tag(ours, "kubernetes.io/cluster/demo", "shared"),
		"another pool for ours":    tag(ours, launch.TagNodePool, "x"),
		"another cluster for ours": tag(ours, launch.TagClusterName, "other"),
	} {
		if !isDenied(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
	if tagged(t.Context(), r.admin, others, "Name") {
		t.Error("the instance of others was tagged")
	}
}

func TestBucketsOfOthersAreClosed(t *testing.T) {
	r := start(t, load(t))
	own := s3.NewFromConfig(r.as("admin", region), pathStyle)
	for _, at := range [][2]string{{"others", "secret"}, {r.bucket, "secret"}, {r.bucket, "catalog.json.gz"}} {
		if _, err := own.PutObject(t.Context(), &s3.PutObjectInput{Bucket: &at[0], Key: &at[1]}); err != nil {
			t.Fatal(err)
		}
	}
	read := func(function, bucket, key string) error {
		_, err := s3.NewFromConfig(r.of(function), pathStyle).GetObject(t.Context(), &s3.GetObjectInput{Bucket: &bucket, Key: &key})
		return err
	}
	write := func(function, bucket, key string) error {
		_, err := s3.NewFromConfig(r.of(function), pathStyle).PutObject(t.Context(), &s3.PutObjectInput{Bucket: &bucket, Key: &key})
		return err
	}
	for name, err := range map[string]error{
		"another bucket":                  read("provision", "others", "secret"),
		"another bucket, by refresh":      read("refresh", "others", "secret"),
		"another object":                  read("provision", r.bucket, "secret"),
		"the catalog, by lifecycle":       read("lifecycle", r.bucket, "catalog.json.gz"),
		"writing the catalog, provision":  write("provision", r.bucket, "catalog.json.gz"),
		"writing another object, refresh": write("refresh", r.bucket, "secret"),
		"writing another bucket, refresh": write("refresh", "others", "catalog.json.gz"),
	} {
		if !isDenied(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func TestProfilesOfOthersAreClosed(t *testing.T) {
	r := start(t, load(t))
	client := iam.NewFromConfig(r.of("refresh"))
	_, remove := client.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{
		InstanceProfileName: aws.String("nodes"), RoleName: aws.String(nodeRole)})
	_, untagged := client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{
		InstanceProfileName: aws.String("demo_1"), Path: aws.String("/karpenter/us-west-2/demo/1/")})
	_, elsewhere := client.CreateInstanceProfile(t.Context(), &iam.CreateInstanceProfileInput{InstanceProfileName: aws.String("demo_2"), Tags: []iamtypes.Tag{
		{Key: aws.String("kubernetes.io/cluster/demo"), Value: aws.String("owned")}, {Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")},
		{Key: aws.String("topology.kubernetes.io/region"), Value: aws.String(region)}, {Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String("a")}}})
	_, parameter := ssm.NewFromConfig(r.of("refresh")).GetParameter(t.Context(), &ssm.GetParameterInput{Name: aws.String("/prod/password")})
	for name, err := range map[string]error{
		"emptying another profile": remove, "making one without tags": untagged, "making one outside our path": elsewhere,
		"reading a parameter of the account": parameter,
	} {
		if !isDenied(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func TestOtherFunctionsClustersAndRegionsAreClosed(t *testing.T) {
	r := start(t, load(t))
	wakes := func(function, other string) error {
		return invoke.Function{Lambda: lambda.NewFromConfig(r.of(function)), Name: other}.Wake(t.Context())
	}
	_, other := eks.NewFromConfig(r.of("refresh")).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("other")})
	_, entry := eks.NewFromConfig(r.of("provision")).CreateAccessEntry(t.Context(), &eks.CreateAccessEntryInput{ClusterName: aws.String("demo"), PrincipalArn: aws.String("arn:aws:iam::111122223333:role/Admin")})
	_, far := ec2.NewFromConfig(r.as(r.stack.FindFunction("joiner-demo-lifecycle").RoleARN, "eu-west-1")).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	_, linked := iam.NewFromConfig(r.of("setup")).CreateServiceLinkedRole(t.Context(), &iam.CreateServiceLinkedRoleInput{AWSServiceName: aws.String("eks.amazonaws.com")})
	_, looks := eks.NewFromConfig(r.of("wake")).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	_, notice := eks.NewFromConfig(r.of("spotinterruption")).DescribeCluster(t.Context(), &eks.DescribeClusterInput{Name: aws.String("demo")})
	_, stranger := ec2.NewFromConfig(r.as("Admin", region)).DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{})
	for name, err := range map[string]error{
		"a function of another stack":      wakes("provision", "billing"),
		"a function it has no word with":   wakes("spotinterruption", "joiner-demo-refresh"),
		"itself, without end":              wakes("provision", "joiner-demo-provision"),
		"setup, by whom anybody may call":  wakes("wake", "joiner-demo-setup"),
		"a version that is not live":       wakes("wake", "joiner-demo-provision"),
		"a role of another service":        linked,
		"the cluster, by the same":         looks,
		"the cluster, by a notice":         notice,
		"another cluster":                  other,
		"access for somebody":              entry,
		"another region":                   far,
		"a role that is none of the stack": stranger,
	} {
		if !isDenied(err) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

// TestNetworkInterfacesAreLambdasAlone: in a VPC Lambda makes and ends the network interfaces of a function with the
// function's own role. The code of the function, which has that role too, must not: the interfaces of the account's
// nodes and pods would be within its reach.
func TestNetworkInterfacesAreLambdasAlone(t *testing.T) {
	r := start(t, inVPC(t))
	nic := aws.String("eni-0123456789abcdef0")
	deeds := map[string]func(*ec2.Client) error{
		"make one": func(c *ec2.Client) error {
			_, err := c.CreateNetworkInterface(t.Context(), &ec2.CreateNetworkInterfaceInput{SubnetId: aws.String("subnet-0123456789abcdef0")})
			return err
		},
		"end one": func(c *ec2.Client) error {
			_, err := c.DeleteNetworkInterface(t.Context(), &ec2.DeleteNetworkInterfaceInput{NetworkInterfaceId: nic})
			return err
		},
		"give it an address": func(c *ec2.Client) error {
			_, err := c.AssignPrivateIpAddresses(t.Context(), &ec2.AssignPrivateIpAddressesInput{NetworkInterfaceId: nic, SecondaryPrivateIpAddressCount: aws.Int32(1)})
			return err
		},
		"take an address off it": func(c *ec2.Client) error {
			_, err := c.UnassignPrivateIpAddresses(t.Context(), &ec2.UnassignPrivateIpAddressesInput{NetworkInterfaceId: nic, PrivateIpAddresses: []string{"10.0.0.9"}})
			return err
		},
	}
	for _, f := range r.stack.Functions {
		function := strings.TrimPrefix(f.Name, "joiner-demo-")
		for name, do := range deeds {
			if err := do(ec2.NewFromConfig(r.of(function))); !isDenied(err) {
				t.Errorf("the code of %s may %s: %v, want a refusal", function, name, err)
			}
			outside := slices.Contains([]string{"preflight", "wake"}, function) // which never run in a VPC
			if err := do(ec2.NewFromConfig(r.as(f.RoleARN, region))); isDenied(err) != outside {
				t.Errorf("Lambda with the role of %s, which is to %s: %v", function, name, err)
			}
		}
	}
}
