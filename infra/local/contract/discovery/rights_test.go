package discovery

import (
	"maps"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"
)

// TestTheRightsThatRefreshNeeds lists every call, so that a new one is entered in the role of the stack as well.
func TestTheRightsThatRefreshNeeds(t *testing.T) {
	r, c := start(t), class()
	_, err := r.finder.EC2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: aws.String("template"),
		LaunchTemplateData: &types.RequestLaunchTemplateData{InstanceType: "m5.large"},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeLaunchTemplate, Tags: []types.Tag{
			{Key: aws.String("eks:eks-cluster-name"), Value: aws.String("demo")}, {Key: aws.String("karpenter.k8s.aws/ec2nodeclass"), Value: aws.String("default")}}}}})
	if err != nil {
		t.Fatal(err)
	}
	r.ForgetCalls()
	r.refresh(t)
	if err := r.look(t, c); err != nil {
		t.Fatal(err)
	}
	if err := r.finder.DeleteArtifacts(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"ec2:DeleteLaunchTemplate", "ec2:DescribeImages", "ec2:DescribeInstanceTypeOfferings", "ec2:DescribeInstanceTypes",
		"ec2:DescribeLaunchTemplates", "ec2:DescribeSecurityGroups", "ec2:DescribeSpotPriceHistory", "ec2:DescribeSubnets",
		"iam:AddRoleToInstanceProfile", "iam:CreateInstanceProfile", "iam:DeleteInstanceProfile", "iam:GetInstanceProfile",
		"iam:ListInstanceProfiles", "iam:RemoveRoleFromInstanceProfile", "pricing:GetProducts", "s3:GetObject", "s3:PutObject",
		"ssm:GetParameter",
	}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(r.CallCounts()))); diff != "" {
		t.Errorf("calls (-want +got):\n%s", diff)
	}
}
