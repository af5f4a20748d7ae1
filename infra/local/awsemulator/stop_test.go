package awsemulator_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/infra/local/awsemulator"
)

// A public address is gone while an instance is stopped, and another one when it is started. One that has none gets none.
func TestPublicAddressesOfStoppedInstances(t *testing.T) {
	states := make(chan awsemulator.Instance, 20)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
	for _, asks := range []bool{false, true} {
		name := fmt.Sprintf("public-%t", asks)
		_, err := r.ec2.CreateLaunchTemplate(t.Context(), &ec2.CreateLaunchTemplateInput{LaunchTemplateName: &name,
			LaunchTemplateData: &types.RequestLaunchTemplateData{ImageId: aws.String(r.image(t, "amazon-eks-node-al2023-x86_64-standard-1.36-v20261109")), NetworkInterfaces: []types.LaunchTemplateInstanceNetworkInterfaceSpecificationRequest{
				{DeviceIndex: aws.Int32(0), AssociatePublicIpAddress: &asks}}}})
		if err != nil {
			t.Fatal(err)
		}
		in := r.fleet(t, "on-demand", "m5.large")
		in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = &name
		id := r.launch(t, in)
		is := func(want string) (private, public string) {
			t.Helper()
			for next(t, states).State != want {
			}
			i := must(r.ec2.DescribeInstances(t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{id}}))(t).Reservations[0].Instances[0]
			association := i.NetworkInterfaces[0].Association
			if public = aws.ToString(i.PublicIpAddress); (association != nil) != (public != "") || association != nil && *association.PublicIp != public {
				t.Errorf("%s: its address is %q, that of its interface %+v", want, public, association)
			}
			return aws.ToString(i.PrivateIpAddress), public
		}
		private, public := is("running")
		must(r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}}))(t)
		if p, q := is("stopped"); p != private || q != "" {
			t.Errorf("stopped it has %q and %q, had %q and %q", p, q, private, public)
		}
		must(r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}}))(t)
		if p, q := is("running"); p != private || (public != "") != asks || (q != "") != asks || asks && q == public {
			t.Errorf("asked for one: %t; started it has %q and %q, had %q and %q", asks, p, q, private, public)
		}
	}
}

// A stopped instance keeps its address, ends no capacity, and comes back as what it was.
func TestInstancesStopAndStart(t *testing.T) {
	states := make(chan awsemulator.Instance, 20)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }, StopFor: 50 * time.Millisecond, StartFor: 50 * time.Millisecond})
	r.template(t, "nodes-v1")
	before := r.free(t)
	id := r.launch(t, r.fleet(t, "on-demand", "m5.large"))
	until := func(want string) awsemulator.Instance {
		t.Helper()
		for {
			if i := next(t, states); i.State == want {
				return i
			}
		}
	}
	first := until("running")
	stop := func() *ec2.StopInstancesOutput {
		return must(r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}}))(t)
	}
	for range 2 { // the second call changes nothing
		if out := stop(); len(out.StoppingInstances) != 1 || out.StoppingInstances[0].CurrentState.Name != "stopping" || *out.StoppingInstances[0].CurrentState.Code != 64 {
			t.Errorf("stop says %+v", out.StoppingInstances)
		}
	}
	_, err := r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}})
	wantCode(t, err, "IncorrectInstanceState")
	until("stopped")
	if got := r.free(t); got != before-1 {
		t.Errorf("%d addresses are free while it is stopped, want %d", got, before-1)
	}
	r.LimitCapacity(awsemulator.Capacity{InstanceType: "m5.large", Limit: 0})
	_, err = r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}})
	wantCode(t, err, "InsufficientInstanceCapacity")
	r.LimitCapacity(awsemulator.Capacity{InstanceType: "m5.large", Limit: 1})
	for range 2 {
		out := must(r.ec2.StartInstances(t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}}))(t)
		if len(out.StartingInstances) != 1 || out.StartingInstances[0].CurrentState.Name != "pending" {
			t.Errorf("start says %+v", out.StartingInstances)
		}
	}
	now := until("running")
	if now.PrivateDNSName != first.PrivateDNSName || now.UserData != first.UserData || !now.Launched.After(first.Launched) {
		t.Errorf("it came back as %+v, was %+v", now, first)
	}
	_, err = r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id, "i-0123456789abcdef0"}})
	wantCode(t, err, "InvalidInstanceID.NotFound")
	copied := must(awsemulator.CopyInstance(r.Cloud, id))(t)
	if age := now.Launched.Sub(copied.Launched); age < time.Hour {
		t.Errorf("a copy says that it was launched %s before, want an hour", age)
	}
}

func TestSpotInstancesCannotBeStopped(t *testing.T) {
	states := make(chan awsemulator.Instance, 20)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
	r.template(t, "nodes-v1")
	id := r.launch(t, r.fleet(t, "spot", "m5.large"))
	for next(t, states).State != "running" {
	}
	_, err := r.ec2.StopInstances(t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}})
	wantCode(t, err, "UnsupportedOperation")
}
