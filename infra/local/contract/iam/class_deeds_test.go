package iam

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/providers/discovery"
)

func (r *rig) finder(function string) *discovery.ClassResolver {
	cfg := r.of(function)
	return &discovery.ClassResolver{EC2: ec2.NewFromConfig(cfg), SSM: ssm.NewFromConfig(cfg), IAM: iam.NewFromConfig(cfg),
		Region: region, Cluster: "demo", Version: "1.36", CIDR: "10.100.0.0/16", Now: time.Now}
}

func class() *awsv1.EC2NodeClass {
	tags := map[string]string{"karpenter.sh/discovery": "demo"}
	return &awsv1.EC2NodeClass{
		ObjectMeta: metav1.ObjectMeta{Name: "default", UID: claimUID, Generation: 1},
		Spec: awsv1.EC2NodeClassSpec{
			SubnetSelectorTerms:        []awsv1.SubnetSelectorTerm{{Tags: tags}},
			SecurityGroupSelectorTerms: []awsv1.SecurityGroupSelectorTerm{{Tags: tags}},
			AMISelectorTerms:           []awsv1.AMISelectorTerm{{Alias: "al2023@latest"}},
			Role:                       nodeRole,

			PlacementGroupSelector:           &awsv1.PlacementGroupSelector{Name: "ours"},
			CapacityReservationSelectorTerms: []awsv1.CapacityReservationSelectorTerm{{InstanceMatchCriteria: "targeted"}},
		},
	}
}

// looksUp counts a refused role as an error too: to the class it is only a condition.
func looksUp(t *testing.T, r *rig) error {
	found := r.finder("refresh").FindAll(t.Context(), class())
	if refused, ok := errors.AsType[*nodeclass.ProfileError](found.ProfileErr); ok && strings.Contains(refused.Why, "not authorized") {
		return &deniedRole{refused.Why}
	}
	return errors.Join(found.JoinErrors(), found.ProfileErr)
}

type deniedRole struct{ why string }

func (d *deniedRole) Error() string { return d.why }

// profileHeldBy leaves the class's profile with another role in it, as when a call was lost.
func profileHeldBy(role string) func(t *testing.T, r *rig) {
	return func(t *testing.T, r *rig) {
		name := r.lookedUp(t)
		own := iam.NewFromConfig(r.as("admin", region))
		_, err := own.RemoveRoleFromInstanceProfile(t.Context(), &iam.RemoveRoleFromInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(nodeRole)})
		if err == nil {
			_, err = own.AddRoleToInstanceProfile(t.Context(), &iam.AddRoleToInstanceProfileInput{InstanceProfileName: aws.String(name), RoleName: aws.String(role)})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// classLeft leaves what a class leaves: a launch template, and an instance profile with its role.
func classLeft(t *testing.T, r *rig) {
	instanceLaunched(t, r)
	r.lookedUp(t)
}

// lookedUp has an administrator look the class up, and returns the name of its instance profile.
func (r *rig) lookedUp(t *testing.T) string {
	t.Helper()
	cfg := r.as("admin", region)
	own := r.finder("refresh")
	own.EC2, own.SSM, own.IAM = ec2.NewFromConfig(cfg), ssm.NewFromConfig(cfg), iam.NewFromConfig(cfg)
	found := own.FindAll(t.Context(), class())
	if err := errors.Join(found.JoinErrors(), found.ProfileErr); err != nil {
		t.Fatal(err)
	}
	return found.Profile
}

// without is a copy of the order's tags without one.
func without(tags []launch.Tag, key string) []launch.Tag {
	var out []launch.Tag
	for _, t := range tags {
		if t.Key != key {
			out = append(out, t)
		}
	}
	return out
}

func tagged(ctx context.Context, c *ec2.Client, id, key string) bool {
	out, err := c.DescribeInstances(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return false
	}
	for _, t := range out.Reservations[0].Instances[0].Tags {
		if *t.Key == key {
			return true
		}
	}
	return false
}
