package fleet

import (
	"cmp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclaim/launch"
)

// fleetInput is the CreateFleet request of an order, with a ClientToken as our addition.
func fleetInput(o launch.Order, token string) *ec2.CreateFleetInput {
	in := &ec2.CreateFleetInput{
		Type:        types.FleetTypeInstant,
		ClientToken: aws.String(token),
		TargetCapacitySpecification: &types.TargetCapacitySpecificationRequest{
			TotalTargetCapacity:       aws.Int32(int32(o.Count())),
			DefaultTargetCapacityType: types.DefaultTargetCapacityTypeOnDemand,
		},
		TagSpecifications: []types.TagSpecification{
			{ResourceType: types.ResourceTypeInstance, Tags: ec2Tags(o.InstanceTags)},
			{ResourceType: types.ResourceTypeVolume, Tags: ec2Tags(o.Tags)},
			{ResourceType: types.ResourceTypeFleet, Tags: ec2Tags(o.Tags)},
		},
	}
	if o.Context != "" {
		in.Context = aws.String(o.Context)
	}
	switch target := &in.TargetCapacitySpecification.DefaultTargetCapacityType; {
	case o.CapacityType == instancetypes.Spot:
		*target = types.DefaultTargetCapacityTypeSpot
		in.SpotOptions = &types.SpotOptionsRequest{AllocationStrategy: types.SpotAllocationStrategy(o.Strategy)}
	case o.Market == launch.MarketBlock:
		*target = types.DefaultTargetCapacityTypeCapacityBlock
	case o.Market == launch.MarketInterruptible:
		*target = types.DefaultTargetCapacityTypeReservedCapacity
		in.ReservedCapacityOptions = &types.ReservedCapacityOptionsRequest{
			ReservationTypes: []types.FleetReservationType{types.FleetReservationTypeInterruptibleCapacityReservation}}
	default:
		in.OnDemandOptions = &types.OnDemandOptionsRequest{
			AllocationStrategy: types.FleetOnDemandAllocationStrategy(o.Strategy)}
	}
	for _, t := range o.Templates {
		in.LaunchTemplateConfigs = append(in.LaunchTemplateConfigs, types.FleetLaunchTemplateConfigRequest{
			LaunchTemplateSpecification: &types.FleetLaunchTemplateSpecificationRequest{
				LaunchTemplateName: aws.String(t.Name), Version: aws.String("$Latest")},
			Overrides: fleetOverrides(t),
		})
	}
	return in
}

func fleetOverrides(t launch.Template) []types.FleetLaunchTemplateOverridesRequest {
	var out []types.FleetLaunchTemplateOverridesRequest
	for _, v := range t.Overrides {
		out = append(out, types.FleetLaunchTemplateOverridesRequest{
			InstanceType: types.InstanceType(v.Type), SubnetId: aws.String(v.SubnetID), ImageId: aws.String(v.ImageID),
			AvailabilityZone: aws.String(v.Zone), Priority: aws.Float64(v.Price)})
	}
	return out
}

func ec2Tags(in []launch.Tag) []types.Tag {
	return lists.Of(in,
		func(t launch.Tag) types.Tag { return types.Tag{Key: aws.String(t.Key), Value: aws.String(t.Value)} })
}

// spreadLimit is EC2's text for a spread placement group that has as many instances in a zone as it may have.
const spreadLimit = "limit of instances in this spread placement group"

// notSold is EC2's text for a zone that does not sell the type; its code stands for whatever is wrong with a fleet.
const notSold = "is not supported in your requested Availability Zone"

// refusesOfferings reports whether the error is about offerings that are not to be had.
func refusesOfferings(e types.CreateFleetError) bool {
	said := aws.ToString(e.ErrorMessage)
	return awserrors.NoCapacity(aws.ToString(e.ErrorCode)) || strings.Contains(said, spreadLimit) ||
		strings.Contains(said, notSold)
}

// splitErrors splits the errors of a CreateFleet answer into refused offerings and others. What a reservation refuses
// is not unavailable elsewhere. An offering that a policy denies is marked too, and its error is among the others.
func splitErrors(o launch.Order, errs []types.CreateFleetError) (unavailable []instancetypes.UnavailableOffering,
	other []types.CreateFleetError) {
	for _, e := range errs {
		c := aws.ToString(e.ErrorCode)
		if c == awserrors.SpotRoleMissing {
			unavailable = append(unavailable, instancetypes.UnavailableOffering{
				OfferingKey: instancetypes.OfferingKey{CapacityType: instancetypes.Spot}, Why: c})
			continue
		}
		if !refusesOfferings(e) {
			other = append(other, e)
			if f, named := offeringNamed(o, e); named && awserrors.IsAboutOffering(c) {
				unavailable = append(unavailable, instancetypes.UnavailableOffering{OfferingKey: f,
					Scope: cmp.Or(o.Reservation(f.Type, f.Zone), o.Group), Why: c})
			}
			continue
		}
		if id := subnetOf(e); c == awserrors.NoAddresses && id != "" { // other subnets of the zone may have some
			unavailable = append(unavailable, instancetypes.UnavailableOffering{Scope: id, Why: c})
			continue
		}
		for _, f := range offeringsRefused(o, e) {
			scope := cmp.Or(o.Reservation(f.Type, f.Zone), o.Group)
			// whatever the type: the group takes no more there
			if strings.Contains(aws.ToString(e.ErrorMessage), spreadLimit) {
				f.Type, scope = "", o.Group
			}
			unavailable = append(unavailable, instancetypes.UnavailableOffering{OfferingKey: f, Scope: scope, Why: c})
		}
	}
	return unavailable, other
}

func subnetOf(e types.CreateFleetError) string {
	if v := e.LaunchTemplateAndOverrides; v != nil && v.Overrides != nil {
		return aws.ToString(v.Overrides.SubnetId)
	}
	return ""
}

// offeringsRefused returns the offerings that an error is about. Without knowing which offering, it is all that were
// asked for; a wildcard would shut out much more.
func offeringsRefused(o launch.Order, e types.CreateFleetError) []instancetypes.OfferingKey {
	if f, named := offeringNamed(o, e); named {
		return []instancetypes.OfferingKey{f}
	}
	return o.Offerings()
}

// offeringNamed is the offering that an error names.
func offeringNamed(o launch.Order, e types.CreateFleetError) (f instancetypes.OfferingKey, named bool) {
	v := e.LaunchTemplateAndOverrides
	if v == nil || v.Overrides == nil {
		return f, false
	}
	f = instancetypes.OfferingKey{CapacityType: o.CapacityType, Type: string(v.Overrides.InstanceType),
		Zone: aws.ToString(v.Overrides.AvailabilityZone)}
	return f, f.Type != "" && f.Zone != ""
}

// leavesOfferings reports whether some offering of the order is not among the unavailable ones. Then the others may
// be asked for at once, whatever was denied.
func leavesOfferings(o launch.Order, unavailable []instancetypes.UnavailableOffering,
	other []types.CreateFleetError) bool {
	for _, e := range other {
		if _, named := offeringNamed(o, e); !named || !awserrors.IsAboutOffering(aws.ToString(e.ErrorCode)) {
			return false
		}
	}
	return slices.ContainsFunc(o.Offerings(), func(f instancetypes.OfferingKey) bool {
		is := func(u instancetypes.UnavailableOffering) bool { return u.OfferingKey == f }
		return !slices.ContainsFunc(unavailable, is)
	})
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
