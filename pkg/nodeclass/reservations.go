package nodeclass

import (
	"cmp"
	"slices"
	"time"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
)

// updateReservations writes the reservations that have not ended. A class with none is as ready as another.
// Those of a kind that is not known are left out: what to ask of EC2 for them is not known either.
func updateReservations(c *awsv1.EC2NodeClass, resolved Resolved, now time.Time) {
	if resolved.ReservationsErr != nil {
		if recordUnfound(c, awsv1.ConditionCapacityReservationsReady, ReasonReservationsNotFound,
			resolved.ReservationsErr, now) {
			c.Status.CapacityReservations = nil
		}
		return
	}
	c.Status.CapacityReservations = nil
	for _, r := range resolved.Reservations {
		if !slices.Contains([]string{"open", "targeted"}, r.InstanceMatchCriteria) ||
			!slices.Contains([]awsv1.CapacityReservationType{awsv1.CapacityReservationTypeDefault,
				awsv1.CapacityReservationTypeCapacityBlock}, r.ReservationType) ||
			r.EndTime != nil && !now.Before(r.EndTime.Time) {
			continue
		}
		r.State = awsv1.CapacityReservationStateActive
		if isEnding(r, now) {
			r.State = awsv1.CapacityReservationStateExpiring
		}
		c.Status.CapacityReservations = append(c.Status.CapacityReservations, r)
	}
	slices.SortFunc(c.Status.CapacityReservations,
		func(a, b awsv1.CapacityReservation) int { return cmp.Compare(a.ID, b.ID) })
	c.StatusConditions().SetTrue(awsv1.ConditionCapacityReservationsReady, now)
}

func isEnding(r awsv1.CapacityReservation, now time.Time) bool {
	if r.EndTime == nil {
		return false
	}
	return instancetypes.Reservation{Kind: string(r.ReservationType), Ends: r.EndTime.Time}.Ending(now)
}

// updatePlacement says whether the placement group of the class exists. Which one it is has no place in the
// status: it is looked up before each launch.
func updatePlacement(c *awsv1.EC2NodeClass, r Resolved, now time.Time) {
	conditions, selector := c.StatusConditions(), c.Spec.PlacementGroupSelector
	switch {
	case selector == nil || r.PlacementErr == nil && r.Placement != nil:
		conditions.SetTrue(awsv1.ConditionPlacementGroupReady, now)
	case r.PlacementErr != nil:
		conditions.SetFalse(awsv1.ConditionPlacementGroupReady, awsv1.ReasonPlacementGroupResolutionFailed,
			r.PlacementErr.Error(), now)
	default:
		conditions.SetFalse(awsv1.ConditionPlacementGroupReady, awsv1.ReasonPlacementGroupNotFound,
			"no placement group "+cmp.Or(selector.ID,
				selector.Name)+" is available in "+r.Region+": make it or change placementGroupSelector", now)
	}
}
