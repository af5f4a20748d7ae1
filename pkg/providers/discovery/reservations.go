package discovery

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

const reservationPage = 1000

// findReservations: terms are ORed; an id beats the rest of its term; an id that does not exist finds nothing.
func (r *ClassResolver) findReservations(ctx context.Context, c *awsv1.EC2NodeClass) ([]awsv1.CapacityReservation,
	error) {
	found := map[string]awsv1.CapacityReservation{}
	for _, t := range c.Spec.CapacityReservationSelectorTerms {
		if t.IsEmpty() {
			continue
		}
		in := &ec2.DescribeCapacityReservationsInput{Filters: []types.Filter{ec2Filter(filterState,
			string(types.CapacityReservationStateActive))}}
		if t.ID != "" {
			in.CapacityReservationIds = []string{t.ID} // one by one: an unknown id fails the whole call
		} else {
			in.MaxResults = aws.Int32(reservationPage)
			in.Filters = append(in.Filters, tagFilters(t.Tags)...)
			if t.InstanceMatchCriteria != "" {
				in.Filters = append(in.Filters, ec2Filter("instance-match-criteria", t.InstanceMatchCriteria))
			}
			if t.OwnerID != "" {
				in.Filters = append(in.Filters, ec2Filter("owner-id", t.OwnerID))
			}
		}
		pages := ec2.NewDescribeCapacityReservationsPaginator(r.EC2, in)
		for page, err := range paging.Bounded(ctx, maxPages, pages, onlyFiltered) {
			if t.ID != "" && awserrors.IsMissing(err) {
				break
			}
			if err != nil {
				return nil, fmt.Errorf("describe capacity reservations: %w", err)
			}
			for _, reservation := range page.CapacityReservations {
				found[aws.ToString(reservation.CapacityReservationId)] = reservationFrom(reservation)
			}
		}
	}
	return filterValues(found), nil
}

func reservationFrom(r types.CapacityReservation) awsv1.CapacityReservation {
	out := awsv1.CapacityReservation{
		ID: aws.ToString(r.CapacityReservationId), AvailabilityZone: aws.ToString(r.AvailabilityZone),
		InstanceType:          aws.ToString(r.InstanceType),
		InstanceMatchCriteria: string(r.InstanceMatchCriteria), OwnerID: aws.ToString(r.OwnerId),
		Interruptible: aws.ToBool(r.Interruptible),
		ReservationType: awsv1.CapacityReservationType(cmp.Or(string(r.ReservationType),
			string(types.CapacityReservationTypeDefault))),
	}
	if r.EndDate != nil {
		out.EndTime = &metav1.Time{Time: r.EndDate.UTC()}
	}
	return out
}

// mostIDs is the largest number of ids or filter values that one call takes.
const mostIDs = 200

// RemainingCapacity reads what is left of what nodes are launched into.
type RemainingCapacity struct{ EC2 *ec2.Client }

// RemainingReservations tells how many instances each capacity reservation has room for. One that is not active is left
// out, and so is one that EC2 does not know. May be repeated.
func (r RemainingCapacity) RemainingReservations(ctx context.Context, ids []string) (map[string]int64, error) {
	out := map[string]int64{}
	for part := range slices.Chunk(ids, mostIDs) {
		err := r.readReservations(ctx, part, out)
		if awserrors.IsMissing(err) && len(part) > 1 { // one unknown id fails the whole call
			for _, id := range part {
				if err = r.readReservations(ctx, []string{id}, out); err != nil && !awserrors.IsMissing(err) {
					break
				}
			}
		}
		if err != nil && !awserrors.IsMissing(err) {
			return nil, fmt.Errorf("describe capacity reservations: %w", err)
		}
	}
	return out, nil
}

func (r RemainingCapacity) readReservations(ctx context.Context, ids []string, out map[string]int64) error {
	got, err := r.EC2.DescribeCapacityReservations(ctx,
		&ec2.DescribeCapacityReservationsInput{CapacityReservationIds: ids})
	if err != nil {
		return err
	}
	for _, reservation := range got.CapacityReservations {
		if reservation.State == types.CapacityReservationStateActive {
			out[aws.ToString(reservation.CapacityReservationId)] = int64(aws.ToInt32(
				reservation.AvailableInstanceCount))
		}
	}
	return nil
}

// RemainingAddresses tells how many addresses each subnet has left. One that EC2 does not know is left out. May be
// repeated.
func (r RemainingCapacity) RemainingAddresses(ctx context.Context, subnets []string) (map[string]int64, error) {
	out := map[string]int64{}
	for part := range slices.Chunk(subnets, mostIDs) {
		got, err := r.EC2.DescribeSubnets(ctx, &ec2.DescribeSubnetsInput{Filters: []types.Filter{ec2Filter("subnet-id",
			part...)}, MaxResults: aws.Int32(subnetPage)})
		if err != nil {
			return nil, fmt.Errorf("describe subnets: %w", err)
		}
		for _, s := range got.Subnets {
			out[aws.ToString(s.SubnetId)] = int64(aws.ToInt32(s.AvailableIpAddressCount))
		}
	}
	return out, nil
}
