package discovery

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
)

// imagesPerCall is the largest number of values that a filter of EC2 takes.
const imagesPerCall = 200

// ImageFinder tells which AMIs there are.
type ImageFinder struct{ EC2 *ec2.Client }

// FindImages returns those of the AMIs that can be launched: one that was deregistered or disabled is left out. May be
// repeated.
func (f ImageFinder) FindImages(ctx context.Context, ids []string) (found []string, err error) {
	for part := range slices.Chunk(ids, imagesPerCall) {
		out, err := f.EC2.DescribeImages(ctx, &ec2.DescribeImagesInput{IncludeDeprecated: aws.Bool(true),
			Filters: []types.Filter{ec2Filter("image-id", part...), ec2Filter("state", "available")}})
		if err != nil {
			return nil, wrapLookup("describe images", err)
		}
		for _, i := range out.Images {
			found = append(found, aws.ToString(i.ImageId))
		}
	}
	return found, nil
}
