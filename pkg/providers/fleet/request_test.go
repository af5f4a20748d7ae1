package fleet

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/google/go-cmp/cmp"

	"joiner/pkg/model/instancetypes"
	"joiner/pkg/nodeclaim/launch"
)

func order() launch.Order {
	return launch.Order{ClaimName: "web-1", ClaimUID: "uid-1", CapacityType: instancetypes.OnDemand, Strategy: "lowest-price", Context: "ctx",
		Tags:         []launch.Tag{{Key: "karpenter.sh/nodepool", Value: "web"}},
		InstanceTags: []launch.Tag{{Key: "karpenter.sh/nodeclaim", Value: "web-1"}, {Key: "karpenter.sh/nodepool", Value: "web"}},
		Templates: []launch.Template{{Name: "joiner/demo/1", Overrides: []launch.Override{
			{Offer: instancetypes.Offer{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "a"}, SubnetID: "subnet-a", ImageID: "ami-1", Price: 0.096}}}}}
}

// said is a request in words, without what the SDK adds.
func said(in *ec2.CreateFleetInput) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %d of %s, token %s, context %s\n", in.Type, *in.TargetCapacitySpecification.TotalTargetCapacity,
		in.TargetCapacitySpecification.DefaultTargetCapacityType, *in.ClientToken, aws.ToString(in.Context))
	if o := in.OnDemandOptions; o != nil {
		fmt.Fprintf(&b, "on-demand by %s\n", o.AllocationStrategy)
	}
	if o := in.SpotOptions; o != nil {
		fmt.Fprintf(&b, "spot by %s\n", o.AllocationStrategy)
	}
	if o := in.ReservedCapacityOptions; o != nil {
		fmt.Fprintf(&b, "reserved as %v\n", o.ReservationTypes)
	}
	for _, s := range in.TagSpecifications {
		fmt.Fprintf(&b, "tags of %s:", s.ResourceType)
		for _, t := range s.Tags {
			fmt.Fprintf(&b, " %s=%s", *t.Key, *t.Value)
		}
		b.WriteString("\n")
	}
	for _, c := range in.LaunchTemplateConfigs {
		fmt.Fprintf(&b, "template %s %s:", *c.LaunchTemplateSpecification.LaunchTemplateName, *c.LaunchTemplateSpecification.Version)
		for _, v := range c.Overrides {
			fmt.Fprintf(&b, " %s %s %s %s %g", v.InstanceType, *v.AvailabilityZone, *v.SubnetId, *v.ImageId, *v.Priority)
		}
		b.WriteString("\n")
	}
	return b.String()
}

// The request of each kind of capacity, with its tags.
func TestFleetRequest(t *testing.T) {
	const rest = "tags of instance: karpenter.sh/nodeclaim=web-1 karpenter.sh/nodepool=web\ntags of volume: karpenter.sh/nodepool=web\ntags of fleet: karpenter.sh/nodepool=web\n" +
		"template joiner/demo/1 $Latest: m5.large a subnet-a ami-1 0.096\n"
	for want, change := range map[string]func(o *launch.Order){
		"instant 1 of on-demand, token t, context ctx\non-demand by lowest-price\n" + rest: func(*launch.Order) {},
		"instant 4 of on-demand, token t, context \non-demand by lowest-price\n" + rest:    func(o *launch.Order) { o.Batch.Size, o.Context = 4, "" },
		"instant 1 of spot, token t, context ctx\nspot by price-capacity-optimized\n" + rest: func(o *launch.Order) {
			o.CapacityType, o.Strategy = instancetypes.Spot, "price-capacity-optimized"
		},
		"instant 1 of on-demand, token t, context ctx\non-demand by prioritized\n" + rest: func(o *launch.Order) { o.CapacityType, o.Strategy = instancetypes.Reserved, "prioritized" },
		"instant 1 of capacity-block, token t, context ctx\n" + rest: func(o *launch.Order) {
			o.CapacityType, o.Market = instancetypes.Reserved, launch.MarketBlock
		},
		"instant 1 of reserved-capacity, token t, context ctx\nreserved as [interruptible-capacity-reservation]\n" + rest: func(o *launch.Order) {
			o.CapacityType, o.Market = instancetypes.Reserved, launch.MarketInterruptible
		},
	} {
		o := order()
		change(&o)
		if d := cmp.Diff(want, said(fleetInput(o, "t"))); d != "" {
			t.Errorf("request (-want +got):\n%s", d)
		}
	}
}

// An answer may leave the zone of an instance to its override, and one without instance and error is an error of its
// own.
func TestOutcomeOfAFleet(t *testing.T) {
	f := &Fleet{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	answer := types.CreateFleetInstance{InstanceIds: []string{"i-1"}, InstanceType: "m5.large"}
	zone := aws.String("a")
	for name, where := range map[string]struct {
		instance *string
		override *types.LaunchTemplateAndOverridesResponse
	}{
		"in the override":                        {nil, &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{AvailabilityZone: zone}}},
		"in the instance, whatever the other":    {zone, &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{AvailabilityZone: aws.String("b")}}},
		"in the instance, of a template":         {zone, &types.LaunchTemplateAndOverridesResponse{}},
		"in the instance, and nothing otherwise": {zone, nil},
	} {
		answer.AvailabilityZone, answer.LaunchTemplateAndOverrides = where.instance, where.override
		got, _, err := f.readOutcome(order(), &ec2.CreateFleetOutput{Instances: []types.CreateFleetInstance{answer}})
		if err != nil || len(got) != 1 || got[0].ProviderID() != "aws:///a/i-1" || got[0].SubnetID != "subnet-a" || got[0].ImageID != "ami-1" {
			t.Errorf("%s: %+v, error %v", name, got, err)
		}
	}
	answer.AvailabilityZone, answer.LaunchTemplateAndOverrides = nil, nil
	if got, _, err := f.readOutcome(order(), &ec2.CreateFleetOutput{Instances: []types.CreateFleetInstance{answer}}); err != nil || got[0].Zone != "" {
		t.Errorf("without any zone: %+v, error %v", got, err)
	}
	o := order()
	o.Batch.Size = 3
	_, _, err := f.readOutcome(o, &ec2.CreateFleetOutput{Instances: []types.CreateFleetInstance{answer}})
	if err == nil || err.Error() != "TooFewInstances: EC2 started 1 instances of 3 and gave no error" {
		t.Errorf("too few: %v", err)
	}
	refusal := types.CreateFleetError{ErrorCode: aws.String("InsufficientInstanceCapacity"), ErrorMessage: aws.String("m")}
	got, marks, err := f.readOutcome(order(), &ec2.CreateFleetOutput{Instances: []types.CreateFleetInstance{answer}, Errors: []types.CreateFleetError{refusal}})
	if err != nil || len(got) != 1 || len(marks) != 1 {
		t.Errorf("an instance beside a refusal: %v, marks %v, error %v", got, marks, err)
	}
}
