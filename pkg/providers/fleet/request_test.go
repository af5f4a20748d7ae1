package fleet

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	"github.com/google/go-cmp/cmp"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

func order() launch.Order {
	return launch.Order{ClaimName: "web-1", ClaimUID: "uid-1", CapacityType: instancetypes.OnDemand, Strategy: "lowest-price", Context: "ctx",
		Tags:         []launch.Tag{{Key: "karpenter.sh/nodepool", Value: "web"}},
		InstanceTags: []launch.Tag{{Key: "karpenter.sh/nodeclaim", Value: "web-1"}, {Key: "karpenter.sh/nodepool", Value: "web"}},
		Templates: []launch.Template{{Name: "joiner/demo/1", Overrides: []launch.Override{
			{OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: "m5.large", Zone: "a"}, SubnetID: "subnet-a", ImageID: "ami-1", Price: 0.096}}}}}
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

// A request that starts nothing says what is unavailable if EC2 does, and EC2's own words if something else is wrong.
func TestAFleetWithoutInstances(t *testing.T) {
	f := &Fleet{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	unavailable := types.CreateFleetError{ErrorCode: aws.String("InsufficientInstanceCapacity"), ErrorMessage: aws.String("none")}
	_, marks, err := f.readOutcome(order(), &ec2.CreateFleetOutput{Errors: []types.CreateFleetError{unavailable}})
	if none, ok := errors.AsType[*instancetypes.NoCapacityError](err); !ok || len(none.Unavailable) != 1 || len(marks) != 0 {
		t.Errorf("unavailable: marks %v, error %v", marks, err)
	}
	wrong := types.CreateFleetError{ErrorCode: aws.String("UnauthorizedOperation"), ErrorMessage: aws.String("you may not")}
	_, marks, err = f.readOutcome(order(), &ec2.CreateFleetOutput{Errors: []types.CreateFleetError{unavailable, wrong}})
	if err == nil || err.Error() != "UnauthorizedOperation: you may not" || len(marks) != 1 {
		t.Errorf("forbidden: marks %v, error %v", marks, err)
	}
}

// An instance has the image and the subnet of the override of its own type and zone.
func TestImageAndSubnetOfAnInstance(t *testing.T) {
	o := order()
	offering := func(kind, zone string) instancetypes.OfferingKey {
		return instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: kind, Zone: zone}
	}
	o.Templates[0].Overrides = []launch.Override{
		{OfferingKey: offering("m5.large", "a"), SubnetID: "subnet-a", ImageID: "ami-x86"},
		{OfferingKey: offering("m5.large", "b"), SubnetID: "subnet-b", ImageID: "ami-x86"},
		{OfferingKey: offering("m6g.large", "b"), SubnetID: "subnet-b", ImageID: "ami-arm"},
	}
	for want, i := range map[string]cluster.Instance{
		"ami-x86 subnet-a": {Type: "m5.large", Zone: "a"},
		"ami-x86 subnet-b": {Type: "m5.large", Zone: "b"},
		"ami-arm subnet-b": {Type: "m6g.large", Zone: "b"},
		" ":                {Type: "m6g.large", Zone: "a"},
	} {
		if image, subnet := imageOf(o, i); image+" "+subnet != want {
			t.Errorf("%s in %s: %s %s, want %s", i.Type, i.Zone, image, subnet, want)
		}
	}
}

// A template without user data or profile leaves them out, which is not the same to EC2 as an empty text.
func TestWhatATemplateLeavesOut(t *testing.T) {
	d := TemplateData(launch.Template{ImageID: "ami-1"})
	if d.UserData != nil || d.IamInstanceProfile != nil {
		t.Errorf("user data %v and profile %v of a template without them", d.UserData, d.IamInstanceProfile)
	}
	d = TemplateData(launch.Template{ImageID: "ami-1", UserData: "Zm9v", InstanceProfile: "nodes"})
	if aws.ToString(d.UserData) != "Zm9v" || aws.ToString(d.IamInstanceProfile.Name) != "nodes" {
		t.Errorf("user data %v and profile %v", d.UserData, d.IamInstanceProfile)
	}
}

// An offering that the answer denies is marked with its reason. While the order has others they are asked for at once;
// when all are denied the claim says why. A denial of nobody knows what marks nothing.
func TestADeniedOffering(t *testing.T) {
	f := &Fleet{Now: func() time.Time { return time.Unix(1_800_000_000, 0) }}
	offering := func(kind string) instancetypes.OfferingKey {
		return instancetypes.OfferingKey{CapacityType: instancetypes.OnDemand, Type: kind, Zone: "a"}
	}
	o := order()
	o.Templates[0].Overrides = []launch.Override{{OfferingKey: offering("c5.large"), SubnetID: "subnet-a"}, {OfferingKey: offering("m5.large"), SubnetID: "subnet-a"}}
	denial := func(code, kind string) types.CreateFleetError {
		e := types.CreateFleetError{ErrorCode: &code, ErrorMessage: aws.String("no")}
		if kind != "" {
			e.LaunchTemplateAndOverrides = &types.LaunchTemplateAndOverridesResponse{Overrides: &types.FleetLaunchTemplateOverrides{
				InstanceType: types.InstanceType(kind), AvailabilityZone: aws.String("a")}}
		}
		return e
	}
	for _, c := range []struct {
		name   string
		errors []types.CreateFleetError
		marks  string
		err    string // empty when others are asked for at once
	}{
		{"one type by a policy", []types.CreateFleetError{denial("UnauthorizedOperation", "c5.large")}, "c5.large UnauthorizedOperation", ""},
		{"one type by the account", []types.CreateFleetError{denial("OptInRequired", "c5.large")}, "c5.large OptInRequired", ""},
		{"one denied, one unavailable", []types.CreateFleetError{denial("UnauthorizedOperation", "c5.large"), denial("InsufficientInstanceCapacity", "m5.large")},
			"c5.large UnauthorizedOperation, m5.large InsufficientInstanceCapacity", "UnauthorizedOperation: no"},
		{"all", []types.CreateFleetError{denial("UnauthorizedOperation", "c5.large"), denial("UnauthorizedOperation", "m5.large")},
			"c5.large UnauthorizedOperation, m5.large UnauthorizedOperation", "UnauthorizedOperation: no"},
		{"without an offering", []types.CreateFleetError{denial("UnauthorizedOperation", "")}, "", "UnauthorizedOperation: no"},
		{"a throttle", []types.CreateFleetError{denial("RequestLimitExceeded", "c5.large")}, "", "RequestLimitExceeded: no"},
		{"a failure of EC2", []types.CreateFleetError{denial("InternalError", "c5.large")}, "", "InternalError: no"},
		{"the old limit of instances", []types.CreateFleetError{denial("InstanceLimitExceeded", "c5.large")}, "c5.large InstanceLimitExceeded", ""},
		{"no dedicated host", []types.CreateFleetError{denial("InsufficientHostCapacity", "c5.large")}, "c5.large InsufficientHostCapacity", ""},
	} {
		_, marks, err := f.readOutcome(o, &ec2.CreateFleetOutput{Errors: c.errors})
		no, others := errors.AsType[*instancetypes.NoCapacityError](err)
		if others {
			marks = no.Unavailable
		}
		var got []string
		for _, u := range marks {
			got = append(got, u.Type+" "+u.Why)
		}
		if d := cmp.Diff(c.marks, strings.Join(got, ", ")); d != "" || others != (c.err == "") || !others && err.Error() != c.err {
			t.Errorf("%s: error %v, marks (-want +got):\n%s", c.name, err, d)
		}
	}
}

// Which errors of a launch are EC2's no to what was asked, as the call's and as the answer's.
func TestWhichLaunchErrorsRefuse(t *testing.T) {
	for _, c := range []struct {
		code   string
		status int
		want   bool
	}{
		{"UnauthorizedOperation", 403, true}, {"InvalidParameterValue", 400, true}, {"InvalidParameterCombination", 400, true},
		{"OptInRequired", 401, true}, {"InvalidAMIID.NotFound", 400, true},
		{"RequestLimitExceeded", 503, false}, {"Throttling", 400, false}, {"InternalError", 500, false},
		{"Unavailable", 503, false}, {"Odd", 500, false}, {"", 0, false},
	} {
		answer := &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: c.status}},
			Err: &smithy.GenericAPIError{Code: c.code, Message: "x"}}
		whole := refusedError(order(), fmt.Errorf("call: %w", &awshttp.ResponseError{ResponseError: answer}))
		r, ok := whole.(interface{ Refused() bool })
		if !ok || r.Refused() != c.want || awserrors.CodeOf(whole) != c.code {
			t.Errorf("%s with %d of the call: %v, want refused %t", c.code, c.status, whole, c.want)
		}
		if got := (&LaunchError{Code: c.code}).Refused(); c.code != "Odd" && got != c.want {
			t.Errorf("%s in an answer: refused %t, want %t", c.code, got, c.want)
		}
	}
	if (&LaunchError{Code: "TooFewInstances"}).Refused() {
		t.Error("an answer with too few instances counts as refused")
	}
}
