package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	"joiner/pkg/cluster"
)

// Impaired lists the running instances of the region that fail a status check, whoever they belong to, sorted by id (spec aws.md
// §6.4). EC2 cannot be asked for both checks in one call.
func (f *Fleet) Impaired(ctx context.Context) ([]cluster.Impairment, error) {
	var out []cluster.Impairment
	for _, filter := range []string{"instance-status.status", "system-status.status"} {
		pages := ec2.NewDescribeInstanceStatusPaginator(f.EC2, &ec2.DescribeInstanceStatusInput{MaxResults: aws.Int32(pageSize),
			Filters: []types.Filter{{Name: aws.String(filter), Values: []string{string(types.SummaryStatusImpaired)}}}})
		for n := 0; pages.HasMorePages(); n++ {
			if n == maxPages {
				return nil, fmt.Errorf("describe instance status: more than %d pages of %d", maxPages, pageSize)
			}
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("describe instance status: %w", err)
			}
			for _, s := range page.InstanceStatuses {
				check, system := s.InstanceStatus, filter == "system-status.status"
				if system {
					check = s.SystemStatus
				}
				if since, failed := failedSince(check); failed {
					out = append(out, cluster.Impairment{Instance: aws.ToString(s.InstanceId), System: system, Since: since})
				}
			}
		}
	}
	slices.SortFunc(out, func(a, b cluster.Impairment) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.Since.Compare(b.Since))
	})
	return out, nil
}

// failedSince is when the first of the check's parts failed that still does.
func failedSince(s *types.InstanceStatusSummary) (since time.Time, failed bool) {
	if s == nil {
		return time.Time{}, false
	}
	for _, d := range s.Details {
		if d.Status != types.StatusTypeFailed || d.ImpairedSince == nil {
			continue
		}
		if !failed || d.ImpairedSince.Before(since) {
			since, failed = d.ImpairedSince.UTC(), true
		}
	}
	return since, failed
}
