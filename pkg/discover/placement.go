package discover

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "joiner/pkg/api/aws/v1"
	"joiner/pkg/awscode"
	"joiner/pkg/catalog"
)

// noGroup is EC2's code for a name or id that no placement group has; it does not end like those of other resources.
const noGroup = "InvalidPlacementGroup.Unknown"

func (f *Finder) placement(ctx context.Context, c *awsv1.EC2NodeClass) (*catalog.Placement, error) {
	s := c.Spec.PlacementGroupSelector
	if s == nil {
		return nil, nil //nolint:nilnil // there is none, and that is all right
	}
	return Levels{EC2: f.EC2}.Group(ctx, catalog.Placement{ID: s.ID, Name: s.Name})
}

// Group looks up the placement group that is selected by its id or name (spec aws.md §1.15). It is nil when there is none that takes
// instances. May be repeated.
func (l Levels) Group(ctx context.Context, p catalog.Placement) (*catalog.Placement, error) {
	in := &ec2.DescribePlacementGroupsInput{Filters: []types.Filter{filter("state", string(types.PlacementGroupStateAvailable))}}
	if p.ID != "" {
		in.GroupIds = []string{p.ID}
	} else {
		in.GroupNames = []string{p.Name}
	}
	out, err := l.EC2.DescribePlacementGroups(ctx, in)
	if awscode.Of(err) == noGroup || awscode.Missing(err) {
		return nil, nil //nolint:nilnil // that there is none is the answer
	}
	if err != nil {
		return nil, fmt.Errorf("describe placement group %s: %w", p.Selected(), err)
	}
	for _, g := range out.PlacementGroups {
		return &catalog.Placement{ID: aws.ToString(g.GroupId), Name: aws.ToString(g.GroupName), Strategy: string(g.Strategy),
			Partitions: int64(aws.ToInt32(g.PartitionCount))}, nil
	}
	return nil, nil //nolint:nilnil // that there is none is the answer
}
