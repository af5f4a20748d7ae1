package discovery

import (
	"errors"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// Terms without content are no calls, and what is beside them is asked for alone.
func TestEmptySelectorTermsAskForNothing(t *testing.T) {
	var c awsv1.EC2NodeClass
	c.Spec.SubnetSelectorTerms = []awsv1.SubnetSelectorTerm{{Tags: map[string]string{}}, {}}
	c.Spec.SecurityGroupSelectorTerms = []awsv1.SecurityGroupSelectorTerm{{Tags: map[string]string{}, Name: ""}}
	c.Spec.AMISelectorTerms = []awsv1.AMISelectorTerm{{Name: ""}, {SSMParameter: ""}, {Owner: "amazon"},
		{Name: "", Owner: "self", Tags: map[string]string{}}}
	c.Spec.CapacityReservationSelectorTerms = []awsv1.CapacityReservationSelectorTerm{{Tags: map[string]string{}},
		{OwnerID: "111122223333"}}
	seen := &answers{body: "<r></r>"}
	r := &ClassResolver{EC2: ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: seen, Credentials: aws.AnonymousCredentials{}}),
		SSM: ssm.New(ssm.Options{Region: "us-west-2", HTTPClient: seen, Credentials: aws.AnonymousCredentials{}})}
	look := func() {
		t.Helper()
		subnets, err1 := r.findSubnets(t.Context(), &c)
		groups, err2 := r.findSecurityGroups(t.Context(), &c)
		images, err3 := r.findImages(t.Context(), &c)
		reservations, err4 := r.findReservations(t.Context(), &c)
		if err := errors.Join(err1, err2, err3, err4); err != nil || len(subnets)+len(groups)+len(images)+len(reservations) > 0 {
			t.Errorf("subnets %v, groups %v, images %v, reservations %v, error %v", subnets, groups, images, reservations, err)
		}
	}
	if look(); seen.asked != "" {
		t.Errorf("asked: %s", seen.asked)
	}
	c.Spec.SubnetSelectorTerms = append(c.Spec.SubnetSelectorTerms, awsv1.SubnetSelectorTerm{ID: "subnet-1"})
	if look(); !strings.Contains(seen.asked, "Filter.1.Name=subnet-id") || !strings.Contains(seen.asked, "subnet-1") {
		t.Errorf("asked: %s", seen.asked)
	}
}

// No Describe call of a selector goes out that would answer with all that there is, whatever made it.
func TestCallsOfSelectorsHaveAFilter(t *testing.T) {
	seen := &answers{body: "<r></r>"}
	client := ec2.New(ec2.Options{Region: "us-west-2", HTTPClient: seen, Credentials: aws.AnonymousCredentials{}})
	state, tag := ec2Filter("state", "available"), ec2Filter("tag:a", "b")
	for name, c := range map[string]struct {
		call func() error
		want error
	}{
		"subnets, all": {func() error {
			_, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{}, onlyFiltered)
			return err
		}, errUnfiltered},
		"subnets, by a tag": {func() error {
			_, err := client.DescribeSubnets(t.Context(), &ec2.DescribeSubnetsInput{Filters: []types.Filter{tag}}, onlyFiltered)
			return err
		}, nil},
		"groups, all": {func() error {
			_, err := client.DescribeSecurityGroups(t.Context(), &ec2.DescribeSecurityGroupsInput{}, onlyFiltered)
			return err
		}, errUnfiltered},
		"groups, by a filter without values": {func() error {
			_, err := client.DescribeSecurityGroups(t.Context(),
				&ec2.DescribeSecurityGroupsInput{Filters: []types.Filter{ec2Filter("group-id")}}, onlyFiltered)
			return err
		}, errUnfiltered},
		"images of an owner": {func() error {
			_, err := client.DescribeImages(t.Context(),
				&ec2.DescribeImagesInput{Owners: []string{"amazon"}, Filters: []types.Filter{state}}, onlyFiltered)
			return err
		}, errUnfiltered},
		"images, by id": {func() error {
			_, err := client.DescribeImages(t.Context(), &ec2.DescribeImagesInput{ImageIds: []string{"ami-1"}}, onlyFiltered)
			return err
		}, nil},
		"reservations, all": {func() error {
			_, err := client.DescribeCapacityReservations(t.Context(),
				&ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{state}}, onlyFiltered)
			return err
		}, errUnfiltered},
		"reservations, by id": {func() error {
			_, err := client.DescribeCapacityReservations(t.Context(),
				&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: []string{"cr-1"}, Filters: []types.Filter{state}}, onlyFiltered)
			return err
		}, nil},
	} {
		seen.asked = ""
		if err := c.call(); !errors.Is(err, c.want) || (seen.asked == "") != (c.want != nil) {
			t.Errorf("%s: error %v, asked %q", name, err, seen.asked)
		}
	}
}
