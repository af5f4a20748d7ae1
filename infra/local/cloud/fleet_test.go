package cloud_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner/infra/local/cloud"
)

func TestAFleetInstanceIsWhatTemplateAndRequestSay(t *testing.T) {
	states := make(chan cloud.Instance, 10)
	r := start(t, cloud.Options{OnInstance: func(i cloud.Instance) { states <- i }})
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "spot", "m5.large", "c5.large"))
	for _, want := range []string{"pending", "running"} {
		if got := next(t, states); got.ID != id || got.State != want || got.UserData != "hello node" {
			t.Fatalf("callback got %s %s %q, want %s %s with its user data", got.ID, got.State, got.UserData, id, want)
		}
	}
	out := must(r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}))(t)
	i := out.Reservations[0].Instances[0]
	tags := map[string]string{}
	for _, tag := range i.Tags {
		tags[*tag.Key] = *tag.Value
	}
	delete(tags, "aws:ec2launchtemplate:id")
	want := map[string]string{
		"from": "template", "team": "b", "karpenter.sh/nodepool": "default", "aws:ec2launchtemplate:version": "1",
	}
	if diff := cmp.Diff(want, tags); diff != "" {
		t.Errorf("tags (-want +got):\n%s", diff)
	}
	got := []any{
		i.InstanceType, i.InstanceLifecycle, *i.PrivateDnsName, i.State.Name, *i.SecurityGroups[0].GroupName,
		*i.IamInstanceProfile.Arn, i.MetadataOptions.HttpTokens, *i.Placement.AvailabilityZone, i.SpotInstanceRequestId != nil,
	}
	wanted := []any{
		types.InstanceType("c5.large"), types.InstanceLifecycleTypeSpot, "ip-10-0-64-4.us-west-2.compute.internal",
		types.InstanceStateNameRunning, "demo-node", "arn:aws:iam::111122223333:instance-profile/nodes",
		types.HttpTokensStateRequired, "us-west-2b", true,
	}
	if diff := cmp.Diff(wanted, got); diff != "" {
		t.Errorf("instance (-want +got):\n%s", diff)
	}
}

func TestTheSameTokenNeverStartsASecondInstance(t *testing.T) {
	r := start(t, cloud.Options{})
	r.template(t, "nodes-v1")
	in := r.fleet(t, "on-demand", "m5.large")
	in.ClientToken = aws.String("claim-1")
	first := r.launch(t, in)
	if again := r.launch(t, in); again != first {
		t.Errorf("the second call gave %s, want %s again", again, first)
	}
	other := r.fleet(t, "on-demand", "m5.xlarge")
	other.ClientToken = in.ClientToken
	_, err := r.ec2.CreateFleet(t.Context(), other)
	wantCode(t, err, "IdempotentParameterMismatch")
	if n := len(r.Instances()); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
}
