package discovery

import (
	"context"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

const templatePage = 200

// DeleteArtifacts deletes what was made for the class: its launch templates and its instance profiles. It may be
// repeated. Both are tried when one fails.
func (r *ClassResolver) DeleteArtifacts(ctx context.Context, c *awsv1.EC2NodeClass) error {
	return errors.Join(r.deleteTemplates(ctx, ec2Filter("tag:"+awsv1.TagEC2NodeClass, c.Name)),
		r.deleteProfiles(ctx, r.profilePath(c)))
}

// RemoveLeftovers deletes what was made for all classes of the cluster, those of deleted classes too: launch templates
// and instance profiles, with the node role taken out first. It may be repeated. Both are tried when one fails.
func (r *ClassResolver) RemoveLeftovers(ctx context.Context) error {
	return errors.Join(r.deleteTemplates(ctx, ec2Filter("tag-key", awsv1.TagEC2NodeClass)),
		r.deleteProfiles(ctx, r.clusterPath()))
}

// deleteTemplates deletes the launch templates that carry the tag of the cluster and pass the filter. One that cannot
// be deleted does not keep the others.
func (r *ClassResolver) deleteTemplates(ctx context.Context, which types.Filter) error {
	pages := ec2.NewDescribeLaunchTemplatesPaginator(r.EC2,
		&ec2.DescribeLaunchTemplatesInput{MaxResults: aws.Int32(templatePage),
			Filters: []types.Filter{ec2Filter("tag:"+awsv1.TagClusterName, r.Cluster), which}})
	var errs []error
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return errors.Join(append(errs, fmt.Errorf("describe launch templates of cluster %s: %w", r.Cluster, err))...)
		}
		for _, t := range page.LaunchTemplates {
			_, err := r.EC2.DeleteLaunchTemplate(ctx,
				&ec2.DeleteLaunchTemplateInput{LaunchTemplateId: t.LaunchTemplateId})
			if err != nil && !awserrors.IsMissing(err) {
				errs = append(errs, fmt.Errorf("delete launch template %s: %w",
					aws.ToString(t.LaunchTemplateName), err))
			}
		}
	}
	return errors.Join(errs...)
}
