package conformance

import (
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// instance is one of ours: a spot instance, or one of on-demand.
func (a *account) instance(spot bool) types.Instance {
	ids, err := a.ids()
	a.must(err)
	out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: ids})
	a.must(err)
	for _, r := range out.Reservations {
		for _, i := range r.Instances {
			if spot == (i.InstanceLifecycle == types.InstanceLifecycleTypeSpot) {
				return i
			}
		}
	}
	return types.Instance{InstanceId: aws.String("i-0123456789abcdef0"), State: &types.InstanceState{}}
}

// comes waits until the instance of on-demand is in the state, or half a minute is over.
func (a *account) comes(state types.InstanceStateName) types.Instance {
	i := a.instance(false)
	for end := time.Now().Add(30 * time.Second); i.State.Name != state && time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		i = a.instance(false)
	}
	return i
}

// stop says whether the instance stops then.
func (a *account) stop(id string) string {
	out, err := a.ec2.StopInstances(a.t.Context(), &ec2.StopInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return a.say(nil, err)
	}
	s := out.StoppingInstances[0].CurrentState.Name
	return a.say(s == "stopping" || s == "stopped", nil)
}

// start says whether the instance starts then.
func (a *account) start(id string) string {
	out, err := a.ec2.StartInstances(a.t.Context(), &ec2.StartInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return a.say(nil, err)
	}
	s := out.StartingInstances[0].CurrentState.Name
	return a.say(s == "pending" || s == "running", nil)
}

// powerQuestions stop instances and start them.
func powerQuestions() []question {
	const unknown = "i-0123456789abcdef0"
	stopped := func(a *account) string {
		i := a.comes("stopped")
		code := ""
		if i.StateReason != nil {
			code = aws.ToString(i.StateReason.Code)
		}
		return a.say(map[string]any{"state": i.State.Name, "reason": code, "private name": aws.ToString(i.PrivateDnsName) != "", "subnet": aws.ToString(i.SubnetId)}, nil)
	}
	had := map[*account]types.Instance{}
	addresses := func(state types.InstanceStateName) func(a *account) string {
		return func(a *account) string {
			was, i := had[a], a.comes(state)
			public := "another"
			switch aws.ToString(i.PublicIpAddress) {
			case "":
				public = "none"
			case aws.ToString(was.PublicIpAddress):
				public = "the same"
			}
			return a.say(map[string]any{"had a public one": aws.ToString(was.PublicIpAddress) != "", "public": public, "private is the same": *i.PrivateIpAddress == *was.PrivateIpAddress,
				"private name is the same": aws.ToString(i.PrivateDnsName) == aws.ToString(was.PrivateDnsName)}, nil)
		}
	}
	return []question{
		{"ec2 StopInstances: unknown id", func(a *account) string { return a.stop(unknown) }},
		{"ec2 StopInstances: a spot instance", func(a *account) string { return a.stop(*a.instance(true).InstanceId) }},
		{"ec2 StopInstances", func(a *account) string {
			had[a] = a.comes("running")
			return a.stop(*had[a].InstanceId)
		}},
		{"ec2 DescribeInstances: a stopped instance", stopped},
		{"ec2 DescribeInstances: the addresses of a stopped instance", addresses("stopped")},
		{"ec2 StopInstances: again", func(a *account) string { return a.stop(*a.instance(false).InstanceId) }},
		{"ec2 StartInstances: unknown id", func(a *account) string { return a.start(unknown) }},
		{"ec2 StartInstances", func(a *account) string { return a.start(*a.instance(false).InstanceId) }},
		{"ec2 StartInstances: again", func(a *account) string { return a.start(*a.instance(false).InstanceId) }},
		{"ec2 DescribeInstances: the addresses of an instance that was started", addresses("running")},
	}
}
