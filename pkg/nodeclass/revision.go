package nodeclass

import (
	"reflect"

	awsv1 "joiner.sh/pkg/api/aws/v1"
)

// RestoreRevision returns the class as a revision of it keeps it: with the spec, the drift hash and the images of then.
// Subnets, security groups and capacity reservations are those that the class finds now, where its spec selects them by
// the same terms; else they are those of then, as the instance profile is where the role differs.
func RestoreRevision(kept, now *awsv1.EC2NodeClass) *awsv1.EC2NodeClass {
	out := kept.DeepCopy()
	out.UID, out.ResourceVersion, out.DeletionTimestamp = now.UID, now.ResourceVersion, now.DeletionTimestamp
	if reflect.DeepEqual(kept.Spec.SubnetSelectorTerms, now.Spec.SubnetSelectorTerms) {
		out.Status.Subnets = now.Status.Subnets
	}
	if reflect.DeepEqual(kept.Spec.SecurityGroupSelectorTerms, now.Spec.SecurityGroupSelectorTerms) {
		out.Status.SecurityGroups = now.Status.SecurityGroups
	}
	if reflect.DeepEqual(kept.Spec.CapacityReservationSelectorTerms, now.Spec.CapacityReservationSelectorTerms) {
		out.Status.CapacityReservations = now.Status.CapacityReservations
	}
	if kept.Spec.Role == now.Spec.Role {
		out.Status.InstanceProfile = now.Status.InstanceProfile
	}
	return out
}
