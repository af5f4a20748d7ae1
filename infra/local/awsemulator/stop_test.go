package awsemulator_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"joiner.sh/infra/local/awsemulator"
)

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
