package conformance

import (
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

const token = "11111111-2222-3333-4444-555555555555-0"

// order is a CreateFleet request as Joiner makes it.
func (a *account) order(change func(in *ec2.CreateFleetInput)) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type: types.FleetTypeInstant, ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{TotalTargetCapacity: aws.Int32(1), DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand},
		OnDemandOptions:             &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategyLowestPrice},
		LaunchTemplateConfigs: []types.FleetLaunchTemplateConfigRequest{{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{LaunchTemplateName: aws.String("joiner/demo/1"), Version: aws.String("$Latest")},
			Overrides: []types.FleetLaunchTemplateOverridesRequest{{InstanceType: "m5.large", SubnetId: aws.String(a.subnet), ImageId: aws.String(a.image),
				AvailabilityZone: aws.String(region + "a"), Priority: aws.Float64(0.096)}},
		}},
		TagSpecifications: []types.TagSpecification{{ResourceType: types.ResourceTypeInstance, Tags: ours(tag("karpenter.sh/nodeclaim", "default-abcde"))},
			{ResourceType: types.ResourceTypeFleet, Tags: ours()}},
	}
	if change != nil {
		change(in)
	}
	return in
}

// fleet asks for the order, and says what came of it.
func (a *account) fleet(change func(in *ec2.CreateFleetInput)) string {
	out, err := a.ec2.CreateFleet(a.t.Context(), a.order(change))
	if err != nil {
		return a.say(nil, err)
	}
	var got []any
	for _, i := range out.Instances {
		got = append(got, text("%d of %s %s", len(i.InstanceIds), i.InstanceType, i.Lifecycle))
	}
	for _, e := range out.Errors {
		got = append(got, "error "+aws.ToString(e.ErrorCode))
	}
	return a.say(got, nil)
}

// ids are those of the instances that are tagged as ours, in the states that count.
func (a *account) ids() ([]string, error) {
	out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{
		filter("tag:eks:eks-cluster-name", "demo"), filter("tag-key", "karpenter.sh/nodepool"),
		filter("instance-state-name", "pending", "running", "stopping", "stopped", "shutting-down")}})
	var ids []string
	if err == nil {
		for _, r := range out.Reservations {
			for _, i := range r.Instances {
				ids = append(ids, *i.InstanceId)
			}
		}
	}
	return ids, err
}

func (a *account) first() string {
	ids, err := a.ids()
	a.must(err)
	if len(ids) == 0 {
		return "i-0123456789abcdef0"
	}
	return ids[0]
}

func launchQuestions() []question {
	dry := func(in *ec2.CreateFleetInput) { in.DryRun = aws.Bool(true) }
	spot := func(in *ec2.CreateFleetInput) {
		in.ClientToken, in.OnDemandOptions = aws.String(token+"s"), nil
		in.TargetCapacitySpecification.DefaultTargetCapacityType = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategyPriceCapacityOptimized}
	}
	return []question{
		{"ec2 CreateFleet: dry run", func(a *account) string { return a.fleet(dry) }},
		{"ec2 RunInstances: dry run", func(a *account) string {
			_, err := a.ec2.RunInstances(a.t.Context(), &ec2.RunInstancesInput{DryRun: aws.Bool(true), MinCount: aws.Int32(1), MaxCount: aws.Int32(1), InstanceType: "m5.large",
				LaunchTemplate:    &types.LaunchTemplateSpecification{LaunchTemplateName: aws.String("joiner/demo/1"), Version: aws.String("$Latest")},
				NetworkInterfaces: []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: aws.String(a.subnet), Groups: []string{a.group}}}})
			return a.say("done", err)
		}},
		{"ec2 CreateFleet: unknown template", func(a *account) string {
			return a.fleet(func(in *ec2.CreateFleetInput) {
				in.ClientToken = aws.String(token + "t")
				in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("joiner/demo/2")
			})
		}},
		{"ec2 CreateFleet: on-demand", func(a *account) string { return a.fleet(nil) }},
		{"ec2 CreateFleet: the same token again", func(a *account) string {
			said := a.fleet(nil)
			ids, err := a.ids()
			return said + ", instances " + a.say(len(ids), err)
		}},
		{"ec2 CreateFleet: the token with another request", func(a *account) string {
			return a.fleet(func(in *ec2.CreateFleetInput) { in.LaunchTemplateConfigs[0].Overrides[0].Priority = aws.Float64(7) })
		}},
		{"ec2 CreateFleet: spot", func(a *account) string { return a.fleet(spot) }},
		{"ec2 CreateFleet: a type that the zone does not sell", func(a *account) string {
			return a.fleet(func(in *ec2.CreateFleetInput) {
				in.ClientToken, in.LaunchTemplateConfigs[0].Overrides[0].InstanceType = aws.String(token+"z"), "h1.16xlarge"
			})
		}},
	}
}

func instanceQuestions() []question {
	return []question{
		{"ec2 DescribeInstances: an instance of the fleet", func(a *account) string {
			out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{a.first()}})
			if err != nil {
				return a.say(nil, err)
			}
			i := out.Reservations[0].Instances[0]
			return a.say(map[string]any{"state": slices.Contains([]types.InstanceStateName{"pending", "running"}, i.State.Name), "type": i.InstanceType, "zone": aws.ToString(i.Placement.AvailabilityZone),
				"image": aws.ToString(i.ImageId), "subnet": aws.ToString(i.SubnetId), "groups": sorted(i.SecurityGroups, func(g types.GroupIdentifier) string { return *g.GroupId }),
				"private name": aws.ToString(i.PrivateDnsName) != "", "launched": i.LaunchTime != nil, "interfaces": len(i.NetworkInterfaces),
				"tags": sorted(i.Tags, func(t types.Tag) string { return *t.Key })}, nil)
		}},
		{"ec2 DescribeInstances: unknown id", func(a *account) string {
			_, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			return a.say("done", err)
		}},
		{"ec2 DescribeInstances: the tag of nobody", func(a *account) string {
			out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("tag:joiner.sh/nodeclaim-uid", "none")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.Reservations), nil)
		}},
		{"ec2 CreateTags", func(a *account) string {
			id := a.first()
			_, err := a.ec2.CreateTags(a.t.Context(), &ec2.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{tag("Name", "node-1")}})
			if err != nil {
				return a.say(nil, err)
			}
			out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("tag:Name", "node-1")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.Reservations), nil)
		}},
		{"ec2 CreateTags: unknown instance", func(a *account) string {
			_, err := a.ec2.CreateTags(a.t.Context(), &ec2.CreateTagsInput{Resources: []string{"i-0123456789abcdef0"}, Tags: []types.Tag{tag("Name", "x")}})
			return a.say("done", err)
		}},
		{"ec2 DescribeInstanceStatus: the impaired ones", func(a *account) string {
			out, err := a.ec2.DescribeInstanceStatus(a.t.Context(), &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{filter("instance-status.status", "impaired")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.InstanceStatuses), nil)
		}},
		{"ec2 DescribeInstanceStatus: by the other check", func(a *account) string {
			out, err := a.ec2.DescribeInstanceStatus(a.t.Context(), &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{filter("system-status.status", "impaired")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.InstanceStatuses), nil)
		}},
		{"ec2 DescribeInstanceStatus: what is scheduled", func(a *account) string {
			out, err := a.ec2.DescribeInstanceStatus(a.t.Context(), &ec2.DescribeInstanceStatusInput{Filters: []types.Filter{
				filter("event.code", "instance-reboot", "system-reboot", "system-maintenance", "instance-retirement", "instance-stop")}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(len(out.InstanceStatuses), nil)
		}},
		{"ec2 DescribeInstanceStatus: by id", func(a *account) string {
			out, err := a.ec2.DescribeInstanceStatus(a.t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{a.first()}})
			if err != nil {
				return a.say(nil, err)
			}
			return a.say(sorted(out.InstanceStatuses, func(s types.InstanceStatus) string {
				return text("%s, instance %s, system %s, events %d", s.InstanceState.Name, s.InstanceStatus.Status, s.SystemStatus.Status, len(s.Events))
			}), nil)
		}},
		{"ec2 DescribeInstanceStatus: unknown id", func(a *account) string {
			_, err := a.ec2.DescribeInstanceStatus(a.t.Context(), &ec2.DescribeInstanceStatusInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			return a.say("done", err)
		}},
	}
}

// endQuestions end instances.
func endQuestions() []question {
	return []question{
		{"ec2 TerminateInstances: unknown id", func(a *account) string {
			_, err := a.ec2.TerminateInstances(a.t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{"i-0123456789abcdef0"}})
			return a.say("done", err)
		}},
		{"ec2 TerminateInstances: one unknown id among others", func(a *account) string {
			before := a.first()
			_, err := a.ec2.TerminateInstances(a.t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{before, "i-0123456789abcdef0"}})
			return a.say("done", err) + text(", the other one is left %t", before == a.first())
		}},
		{"ec2 TerminateInstances", func(a *account) string { return a.terminate(a.first()) }},
		{"ec2 TerminateInstances: again", func(a *account) string {
			out, err := a.ec2.DescribeInstances(a.t.Context(), &ec2.DescribeInstancesInput{Filters: []types.Filter{filter("tag:Name", "node-1")}})
			a.must(err)
			if len(out.Reservations) == 0 {
				return "forgotten"
			}
			return a.terminate(*out.Reservations[0].Instances[0].InstanceId)
		}},
	}
}

func (a *account) terminate(id string) string {
	out, err := a.ec2.TerminateInstances(a.t.Context(), &ec2.TerminateInstancesInput{InstanceIds: []string{id}})
	if err != nil {
		return a.say(nil, err)
	}
	s := out.TerminatingInstances[0].CurrentState.Name
	return a.say(s == "shutting-down" || s == "terminated", nil)
}
