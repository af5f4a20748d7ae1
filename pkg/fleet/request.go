package fleet

import (
	"cmp"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner/pkg/awscode"
	"joiner/pkg/catalog"
	"joiner/pkg/cluster"
	"joiner/pkg/launch"
)

// fleetInput is the CreateFleet request of an order (spec aws.md §3.5), with a ClientToken as our addition.
func fleetInput(o launch.Order, token string) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type:        types.FleetTypeInstant,
		ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(int32(o.Count())),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: tags(o.InstanceTags)},
			{ResourceType: types.ResourceTypeVolume, Tags: tags(o.Tags)},
			{ResourceType: types.ResourceTypeFleet, Tags: tags(o.Tags)},
		},
	}
	if o.Context != "" {
		in.Context = aws.String(o.Context)
	}
	switch target := &in.TargetCapacitySpecification.DefaultTargetCapacityType; {
	case o.CapacityType == catalog.Spot:
		*target = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategy(o.Strategy)}
	case o.Market == launch.MarketBlock:
		*target = types.DefaultTargetCapacityTypeCapacityBlock
	case o.Market == launch.MarketInterruptible:
		*target = types.DefaultTargetCapacityTypeReservedCapacity
		in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{
			ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation}}
	default:
		in.OnDemandOptions = &types.OnDemandOptionsRequest{AllocationStrategy: types.FleetOnDemandAllocationStrategy(o.Strategy)}
	}
	for _, t := range o.Templates {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(t.Name), Version: aws.String("$Latest")},
			Overrides: overrides(t),
		})
	}
	return in
}

func overrides(t launch.Template) []types.FleetLaunchTemplateOverridesRequest {
	var out []types.FleetLaunchTemplateOverridesRequest
	for _, v := range t.Overrides {
		out = append(out, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(v.Type), SubnetId: aws.String(v.SubnetID), ImageId: aws.String(v.ImageID),
			AvailabilityZone: aws.String(v.Zone), Priority: aws.Float64(v.Price)})
	}
	return out
}

func tags(in []launch.Tag) []types.Tag {
	var out []types.Tag
	for _, t := range in {
		out = append(out, types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)})
	}
	return out
}

// spreadLimit is how EC2 says that a spread placement group has as many instances in a zone as it may have (spec aws.md §1.15).
const spreadLimit = "limit of instances in this spread placement group"

// refusals splits the errors of a CreateFleet answer into refused offers and others (spec aws.md §3.7). What a reservation refuses
// is not sold out elsewhere.
func refusals(o launch.Order, errs []types.CreateFleetError) (marks []catalog.Mark, other []types.CreateFleetError) {
	for _, e := range errs {
		c := aws.ToString(e.ErrorCode)
		if c == awscode.SpotRoleMissing {
			marks = append(marks, catalog.Mark{Offer: catalog.Offer{CapacityType: catalog.Spot}, Why: c})
			continue
		}
		if !awscode.NoCapacity(c) && !strings.Contains(aws.ToString(e.ErrorMessage), spreadLimit) {
			other = append(other, e)
			continue
		}
		if id := subnetOf(e); c == awscode.NoAddresses && id != "" { // other subnets of the zone may have some
			marks = append(marks, catalog.Mark{Scope: id, Why: c})
			continue
		}
		for _, f := range offersOf(o, e) {
			scope := cmp.Or(o.Reservation(f.Type, f.Zone), o.Group)
			if strings.Contains(aws.ToString(e.ErrorMessage), spreadLimit) { // whatever the type: the group takes no more there
				f.Type, scope = "", o.Group
			}
			marks = append(marks, catalog.Mark{Offer: f, Scope: scope, Why: c})
		}
	}
	return marks, other
}

func subnetOf(e types.CreateFleetError) string {
	if v := e.LaunchTemplateAndOverrides; v != nil && v.Overrides != nil {
		return aws.ToString(v.Overrides.SubnetId)
	}
	return ""
}

// offersOf is what an error is about. Without knowing which offer, it is all that were asked for; a wildcard would shut out much more.
func offersOf(o launch.Order, e types.CreateFleetError) []catalog.Offer {
	if v := e.LaunchTemplateAndOverrides; v != nil && v.Overrides != nil {
		f := catalog.Offer{CapacityType: o.CapacityType, Type: string(v.Overrides.InstanceType), Zone: aws.ToString(v.Overrides.AvailabilityZone)}
		if f.Type != "" && f.Zone != "" {
			return []catalog.Offer{f}
		}
	}
	return o.Offers()
}

func imageOf(o launch.Order, i cluster.Instance) (image, subnet string) {
	for _, t := range o.Templates {
		for _, v := range t.Overrides {
			if v.Type == i.Type && (v.Zone == i.Zone || i.Zone == "") {
				return v.ImageID, v.SubnetID
			}
		}
	}
	return "", ""
}
