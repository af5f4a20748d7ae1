package ec2_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/infra/local/awsemulator"
	"joiner.sh/infra/local/cloudtest"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/fleet"
)

// Of the claim whose instance the tests launch.
const (
	claimName = "default-abcde"
	claimUID  = "11111111-2222-3333-4444-555555555555"
	token     = claimUID + "-0"
)

// rig is an account and a fleet in it.
type rig struct {
	*awsemulator.Cloud
	*fleet.Fleet
	ec2   *ec2.Client // the test's own way into the account
	image string
	group string
	zones map[string]string // to subnet
}

// start runs an account. The fleet's client sends a call so many times at most; one means that the test sees the first
// answer.
func start(t *testing.T, attempts int) *rig {
	t.Helper()
	return startWith(t, attempts, awsemulator.Options{ShutdownFor: time.Hour})
}

// startWith runs an account with these options.
func startWith(t *testing.T, attempts int, o awsemulator.Options) *rig {
	t.Helper()
	t.Parallel()
	c, url := cloudtest.Start(t, o)
	c.PutInstanceProfile("nodes", "KarpenterNodeRole-demo")
	client := func(attempts int) *ec2.Client {
		keys := c.IssueCredentials("provision", "test", 0)
		return ec2.NewFromConfig(aws.Config{Region: "us-west-2", BaseEndpoint: aws.String(url), RetryMaxAttempts: attempts,
			HTTPClient: http.DefaultClient, Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return keys, nil })})
	}
	r := &rig{Cloud: c, ec2: client(10), zones: map[string]string{},
		Fleet: &fleet.Fleet{EC2: client(attempts), Cluster: "demo", Now: time.Now}}
	r.look(t)
	return r
}

// look finds out what the account has for nodes.
func (r *rig) look(t *testing.T) {
	t.Helper()
	images, err := r.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"},
		Filters: []types.Filter{{Name: aws.String("name"), Values: []string{"amazon-eks-node-al2023-x86_64-standard-1.36-*"}}}})
	if err != nil || len(images.Images) == 0 {
		t.Fatalf("images: %v", err)
	}
	groups, err := r.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{
		Filters: []types.Filter{{Name: aws.String("group-name"), Values: []string{"demo-node"}}}})
	if err != nil || len(groups.SecurityGroups) != 1 {
		t.Fatalf("security groups: %v", err)
	}
	subnets, err := r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{})
	if err != nil {
		t.Fatal(err)
	}
	r.image, r.group = *images.Images[0].ImageId, *groups.SecurityGroups[0].GroupId
	for _, s := range subnets.Subnets {
		r.zones[*s.AvailabilityZone] = *s.SubnetId
	}
}

// order asks for one of the types, each in zones a and b.
func (r *rig) order(capacityType string, kinds ...string) launch.Order {
	tags := []launch.Tag{
		{Key: launch.TagNodeClass, Value: "default"}, {Key: launch.TagNodePool, Value: "default"},
		{Key: launch.TagClusterName, Value: "demo"}, {Key: "kubernetes.io/cluster/demo", Value: "owned"},
	}
	t := launch.Template{
		Name: "joiner/demo/1", ImageID: r.image, InstanceProfile: "nodes", Tenancy: "default", Tags: tags,
		UserData:          base64.StdEncoding.EncodeToString([]byte("hello node")),
		NetworkInterfaces: []launch.NetworkInterface{{SecurityGroupIDs: []string{r.group}}},
		Metadata:          launch.Metadata{HTTPEndpoint: "enabled", HTTPProtocol: "disabled", HopLimit: 1, HTTPTokens: "required"},
		Reservation:       launch.ReservationSelection{Preference: "none"},
	}
	for i, kind := range kinds {
		for _, zone := range []string{"us-west-2a", "us-west-2b"} {
			t.Overrides = append(t.Overrides, launch.Override{SubnetID: r.zones[zone], ImageID: r.image, Price: 0.1 * float64(i+1),
				OfferingKey: instancetypes.OfferingKey{CapacityType: capacityType, Type: kind, Zone: zone}})
		}
	}
	o := launch.Order{ClaimName: claimName, ClaimUID: claimUID, CapacityType: capacityType, Strategy: "lowest-price",
		Templates: []launch.Template{t}, Tags: tags,
		InstanceTags: append(tags[:len(tags):len(tags)], launch.Tag{Key: launch.TagClaim, Value: claimName}, launch.Tag{Key: launch.TagClaimUID, Value: claimUID})}
	if capacityType == instancetypes.Spot {
		o.Strategy = "price-capacity-optimized"
		o.Templates[0].SpotTags = tags
	}
	return o
}

// launch launches and wants an instance.
func (r *rig) launch(t *testing.T, o launch.Order, token string) string {
	t.Helper()
	i, _, err := r.LaunchInstances(t.Context(), o, token)
	if err != nil {
		t.Fatal(err)
	}
	return i.ID
}

// count fails unless so many instances were ever started.
func (r *rig) count(t *testing.T, want int) {
	t.Helper()
	if n := len(r.Cloud.DescribedInstances()); n != want {
		t.Errorf("%d instances were started, want %d", n, want)
	}
}

// deleteTemplate does what a sweep in another process does.
func (r *rig) deleteTemplate(t *testing.T, name string) {
	t.Helper()
	if _, err := r.ec2.DeleteLaunchTemplate(t.Context(), &ec2.DeleteLaunchTemplateInput{LaunchTemplateName: aws.String(name)}); err != nil {
		t.Fatal(err)
	}
}
