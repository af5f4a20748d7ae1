package fleet

import (
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
)

func instanceFrom(i types.Instance) cluster.Instance {
	out := cluster.Instance{ID: aws.ToString(i.InstanceId), Type: string(i.InstanceType),
		CapacityType: instancetypes.OnDemand,
		ImageID:      aws.ToString(i.ImageId), Launched: aws.ToTime(i.LaunchTime),
		NodeName: aws.ToString(i.PrivateDnsName),
		SubnetID: aws.ToString(i.SubnetId)}
	if i.State != nil {
		out.State = string(i.State.Name)
	}
	if r := i.StateReason; r != nil {
		out.StateReason = stateReason(aws.ToString(r.Code), aws.ToString(r.Message))
	}
	if i.Placement != nil {
		out.Zone, out.Partition = aws.ToString(i.Placement.AvailabilityZone), aws.ToInt32(i.Placement.PartitionNumber)
	}
	if i.InstanceLifecycle == types.InstanceLifecycleTypeSpot || aws.ToString(i.SpotInstanceRequestId) != "" {
		out.CapacityType = instancetypes.Spot
	}
	// One that is in an open reservation by chance is on-demand: it stays when the reservation goes.
	if s := i.CapacityReservationSpecification; i.CapacityReservationId != nil && s != nil &&
		s.CapacityReservationPreference == types.CapacityReservationPreferenceCapacityReservationsOnly {
		out.CapacityType, out.Reservation = instancetypes.Reserved, *i.CapacityReservationId
	}
	for _, g := range i.SecurityGroups {
		out.SecurityGroups = append(out.SecurityGroups, aws.ToString(g.GroupId))
	}
	slices.Sort(out.SecurityGroups)
	for _, t := range i.Tags {
		out.Tags = append(out.Tags, aws.ToString(t.Key))
		switch aws.ToString(t.Key) {
		case launch.TagClaim:
			out.Claim = aws.ToString(t.Value)
		case launch.TagClaimUID:
			out.ClaimUID = aws.ToString(t.Value)
		case launch.TagBatch:
			out.Batch = aws.ToString(t.Value)
		}
	}
	slices.Sort(out.Tags)
	return out
}

// stateReason is code, colon, message; EC2's messages begin with the code already.
func stateReason(code, message string) string {
	if code == "" || strings.HasPrefix(message, code) {
		return message
	}
	return code + ": " + message
}
