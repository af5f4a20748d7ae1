package discovery

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// noGroup is EC2's code for a name or id that no placement group has; it does not end like those of other resources.
const noGroup = "InvalidPlacementGroup.Unknown"

func (r *ClassResolver) findPlacementGroup(ctx context.Context, c *awsv1.EC2NodeClass) (*instancetypes.Placement,
	error) {
	s := c.Spec.PlacementGroupSelector
	if s == nil {
		return nil, nil //nolint:nilnil // there is none, and that is all right
	}
	return RemainingCapacity{EC2: r.EC2}.FindGroup(ctx, instancetypes.Placement{ID: s.ID, Name: s.Name})
}

// FindGroup looks up the placement group that is selected by its id or name. It is nil when there is none that takes
// instances. May be repeated.
func (r RemainingCapacity) FindGroup(ctx context.Context, p instancetypes.Placement) (*instancetypes.Placement, error) {
	in := &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{ec2Filter("state",
		string(types.PlacementGroupStateAvailable))}}
	if p.ID != "" {
		in.GroupIds = []string{p.ID}
	} else {
		in.GroupNames = []string{p.Name}
	}
	out, err := r.EC2.DescribePlacementGroups(ctx, in)
	if awserrors.CodeOf(err) == noGroup || awserrors.IsMissing(err) {
		return nil, nil //nolint:nilnil // that there is none is the answer
	}
	if err != nil {
		return nil, fmt.Errorf("describe placement group %s: %w", p.Selected(), err)
	}
	for _, g := range out.PlacementGroups {
		return &instancetypes.Placement{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName),
			Strategy:   string(g.Strategy),
			Partitions: int64(aws.ToInt32(g.PartitionCount))}, nil
	}
	return nil, nil //nolint:nilnil // that there is none is the answer
}
