package awsemulator_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/infra/local/awsemulator"
)

func TestAFleetInstanceIsWhatTemplateAndRequestSay(t *testing.T) {
	states := make(chan awsemulator.Instance, 10)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
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
	r := start(t, awsemulator.Options{})
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
	if n := len(r.DescribedInstances()); n != 1 {
		t.Errorf("%d instances, want 1", n)
	}
}

func TestAUnavailableOfferingIsReportedAndTheNextOneTaken(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	r.LimitCapacity(awsemulator.Capacity{CapacityType: "spot", InstanceType: "c5.large"})
	out := must(r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "c5.large", "m5.large")))(t)
	var errs []string
	for _, e := range out.Errors {
		o := e.LaunchTemplateAndOverrides.Overrides
		errs = append(errs, *e.ErrorCode+" "+string(e.Lifecycle)+" "+string(o.InstanceType)+" "+*o.AvailabilityZone)
	}
	want := []string{
		"InsufficientInstanceCapacity spot c5.large us-west-2b", "InsufficientInstanceCapacity spot c5.large us-west-2a",
	}
	if diff := cmp.Diff(want, errs); diff != "" {
		t.Errorf("errors (-want +got):\n%s", diff)
	}
	if len(out.Instances) != 1 || out.Instances[0].InstanceType != "m5.large" {
		t.Errorf("instances %v, want one m5.large", out.Instances)
	}
	r.LimitCapacity(awsemulator.Capacity{Code: "MaxSpotInstanceCountExceeded"})
	out = must(r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "m5.large")))(t)
	if len(out.Instances) != 0 || len(out.Errors) != 2 || *out.Errors[0].ErrorCode != "MaxSpotInstanceCountExceeded" {
		t.Errorf("with nothing to sell: instances %v, errors %v", out.Instances, out.Errors)
	}
}

func TestALimitCountsTheLivingAndSplitsAFleet(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	r.LimitCapacity(awsemulator.Capacity{CapacityType: "on-demand", InstanceType: "c5.*", Zone: "us-west-2?", Limit: 2})
	in := r.fleet(t, "on-demand", "c5.large", "m5.large")
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(5)
	out := must(r.ec2.CreateFleet(t.Context(), in))(t)
	got := map[string]int{}
	for _, i := range out.Instances {
		got[string(i.InstanceType)+" "+*i.AvailabilityZone] = len(i.InstanceIds)
	}
	want := map[string]int{"c5.large us-west-2a": 2, "c5.large us-west-2b": 2, "m5.large us-west-2a": 1}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("instances (-want +got):\n%s", diff)
	}
}

func TestALimitHoldsAcrossCallsUntilAnInstanceIsGone(t *testing.T) {
	states := make(chan awsemulator.Instance, 100)
	r := start(t, awsemulator.Options{OnInstance: func(i awsemulator.Instance) { states <- i }})
	r.template(t, "nodes-v1")
	r.LimitCapacity(awsemulator.Capacity{Limit: 1})
	in := r.fleet(t, "on-demand", "m5.large")
	config := &in.LaunchTemplateConfigs[0]
	config.Overrides = config.Overrides[:1]
	in.TargetCapacitySpecification.TotalTargetCapacity = aws.Int32(2)
	out := must(r.ec2.CreateFleet(t.Context(), in))(t)
	if len(out.Instances) != 1 || len(out.Instances[0].InstanceIds) != 1 {
		t.Fatalf("instances %v, want one", out.Instances)
	}
	in.TargetCapacitySpecification.TotalTargetCapacity, in.ClientToken = aws.Int32(1), aws.String("second")
	if out := must(r.ec2.CreateFleet(t.Context(), in))(t); len(out.Instances) != 0 {
		t.Errorf("the offering is full, and the fleet gave %v", out.Instances)
	}
	must(r.ec2.TerminateInstances(t.Context(), &ec2.TerminateInstancesInput{InstanceIds: out.Instances[0].InstanceIds}))(t)
	for next(t, states).State != "terminated" {
	}
	in.ClientToken = aws.String("third")
	r.launch(t, in)
}

func TestAllocationStrategies(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	// Cheapest first: c5.large is cheaper than m5.large. By priority: the first named first.
	for want, edit := range map[string]func(*ec2.CreateFleetInput){
		"c5.large": func(*ec2.CreateFleetInput) {},
		"m5.large": func(in *ec2.CreateFleetInput) {
			in.OnDemandOptions.AllocationStrategy = types.FleetOnDemandAllocationStrategyPrioritized
		},
	} {
		in := r.fleet(t, "on-demand", "m5.large", "c5.large")
		edit(in)
		out := must(r.ec2.CreateFleet(t.Context(), in))(t)
		if got := string(out.Instances[0].InstanceType); got != want {
			t.Errorf("strategy %s took %s, want %s", in.OnDemandOptions.AllocationStrategy, got, want)
		}
	}
	in := r.fleet(t, "spot", "m5.large", "c5.large")
	in.SpotOptions.AllocationStrategy = types.SpotAllocationStrategyCapacityOptimizedPrioritized
	if out := must(r.ec2.CreateFleet(t.Context(), in))(t); out.Instances[0].InstanceType != "m5.large" {
		t.Errorf("capacity-optimized-prioritized took %s", out.Instances[0].InstanceType)
	}
	r.SetSpotPrice("m5.large", "us-west-2a", 0.001)
	if out := must(r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "c5.large", "m5.large")))(t); out.Instances[0].InstanceType != "m5.large" {
		t.Errorf("after the price of m5.large fell, the fleet took %s", out.Instances[0].InstanceType)
	}
}

func TestWhatIsWrongWithAnOverrideIsAnErrorEntry(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	subnets := r.subnets(t)
	for name, c := range map[string]struct {
		edit func(o *types.FleetLaunchTemplateOverridesRequest)
		code string
	}{
		"unknown type": {func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m99.large" }, "InvalidParameterValue"},
		"arm type":     {func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "m6g.large" }, "InvalidParameterValue"},
		"not sold there": {func(o *types.FleetLaunchTemplateOverridesRequest) {
			o.InstanceType = "g5.xlarge"
			o.AvailabilityZone = aws.String("us-west-2d")
			o.SubnetId = aws.String(subnets["us-west-2d"])
		}, "InvalidFleetConfiguration"},
		"no spot":        {func(o *types.FleetLaunchTemplateOverridesRequest) { o.InstanceType = "t2.nano" }, "InvalidFleetConfiguration"},
		"unknown subnet": {func(o *types.FleetLaunchTemplateOverridesRequest) { o.SubnetId = aws.String("subnet-0") }, "InvalidSubnetID.NotFound"},
		"unknown image":  {func(o *types.FleetLaunchTemplateOverridesRequest) { o.ImageId = aws.String("ami-0") }, "InvalidAMIID.NotFound"},
		"low max price":  {func(o *types.FleetLaunchTemplateOverridesRequest) { o.MaxPrice = aws.String("0.001") }, "SpotMaxPriceTooLow"},
	} {
		t.Run(name, func(t *testing.T) {
			in := r.fleet(t, "spot", "m5.large")
			config := &in.LaunchTemplateConfigs[0]
			config.Overrides = config.Overrides[:1]
			c.edit(&config.Overrides[0])
			out := must(r.ec2.CreateFleet(t.Context(), in))(t)
			if len(out.Instances) != 0 || len(out.Errors) != 1 || *out.Errors[0].ErrorCode != c.code {
				t.Errorf("instances %v, errors %v, want %s", out.Instances, out.Errors, c.code)
			}
		})
	}
	for _, id := range subnets {
		r.LimitAddresses(id, 0)
	}
	out := must(r.ec2.CreateFleet(t.Context(), r.fleet(t, "spot", "m5.large")))(t)
	if len(out.Errors) != 2 || *out.Errors[0].ErrorCode != "InsufficientFreeAddressesInSubnet" {
		t.Errorf("without addresses: %v", out.Errors)
	}
}

func TestWhatIsWrongWithTheRequestFailsTheCall(t *testing.T) {
	r := start(t, awsemulator.Options{})
	r.template(t, "nodes-v1")
	in := r.fleet(t, "spot", "m5.large")
	in.DryRun = aws.Bool(true)
	_, err := r.ec2.CreateFleet(t.Context(), in)
	wantCode(t, err, "DryRunOperation")
	in = r.fleet(t, "spot", "m5.large")
	in.LaunchTemplateConfigs[0].LaunchTemplateSpecification.LaunchTemplateName = aws.String("gone")
	_, err = r.ec2.CreateFleet(t.Context(), in)
	wantCode(t, err, "InvalidLaunchTemplateName.NotFoundException")
	in = r.fleet(t, "spot", "m5.large")
	in.Type = types.FleetTypeRequest
	_, err = r.ec2.CreateFleet(t.Context(), in)
	wantCode(t, err, "InvalidParameterValue")
	in = r.fleet(t, "spot", "m5.large")
	for range 50 {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, in.LaunchTemplateConfigs[0])
	}
	_, err = r.ec2.CreateFleet(t.Context(), in)
	wantCode(t, err, "InvalidFleetConfig")
	in = r.fleet(t, "spot", "m5.large")
	overrides := &in.LaunchTemplateConfigs[0].Overrides
	*overrides = append(*overrides, (*overrides)[0]) // a type in a zone twice
	_, err = r.ec2.CreateFleet(t.Context(), in)
	wantCode(t, err, "InvalidFleetConfig")
	if n := len(r.DescribedInstances()); n != 0 {
		t.Errorf("%d instances, want none", n)
	}
}

func TestALostReplyIsMadeGoodByTheSameToken(t *testing.T) {
	for _, kind := range []awsemulator.FaultKind{awsemulator.LoseReply, awsemulator.FailAfter} {
		t.Run(string(kind), func(t *testing.T) {
			r := start(t, awsemulator.Options{})
			r.template(t, "nodes-v1")
			in := r.fleet(t, "spot", "m5.large")
			in.ClientToken = aws.String("claim-1/1")
			r.AddFault(awsemulator.Fault{Service: "ec2", Action: "CreateFleet", Kind: kind, Times: 1})
			if out, err := r.ec2.CreateFleet(t.Context(), in); err == nil {
				t.Fatalf("the reply was not lost: %v", out)
			}
			born := r.DescribedInstances()
			if len(born) != 1 {
				t.Fatalf("%d instances after the lost reply, want 1", len(born))
			}
			if id := r.launch(t, in); id != born[0].ID || len(r.DescribedInstances()) != 1 {
				t.Errorf("the same token gave %s, want %s and no second instance", id, born[0].ID)
			}
		})
	}
}
