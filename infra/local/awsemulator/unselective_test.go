package awsemulator_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/infra/local/awsemulator"
)

// Who has to select something may ask by ids and by filters, and not for all subnets, security groups and images. Others
// may, and other things may be listed.
func TestDescribeCallsThatSelectNothing(t *testing.T) {
	strict := false
	r := start(t, awsemulator.Options{Selecting: func(awsemulator.Caller) bool { return strict }})
	all := must(r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}))(t)
	strict = true
	byTag := []types.Filter{{Name: aws.String("tag:a"), Values: []string{"b"}}}
	empty := []types.Filter{{Name: aws.String("tag:a")}}
	must(r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{SubnetIds: []string{*all.Subnets[0].SubnetId}}))(t)
	must(r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: byTag}))(t)
	must(r.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{Filters: byTag}))(t)
	must(r.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"self"}, Filters: byTag}))(t)
	must(r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{}))(t)
	_, subnets := r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{MaxResults: aws.Int32(5)})
	_, filter := r.ec2.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: empty})
	_, groups := r.ec2.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{})
	_, images := r.ec2.DescribeImages(t.Context(), &ec2.DescribeImagesInput{Owners: []string{"amazon"}})
	for _, err := range []error{subnets, filter, groups, images} {
		wantCode(t, err, "InvalidParameterCombination")
	}
}
