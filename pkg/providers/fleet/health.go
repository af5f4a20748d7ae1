package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// maxNamed is the largest number of instances that one DescribeInstanceStatus may name.
const maxNamed = 100

// ListStatuses lists the status checks that running instances fail, sorted by instance, and what EC2 has scheduled for
// them that is neither done nor called off, sorted by instance and date. Up to a hundred instances are asked for by
// name, in one call; for more the region is asked for what counts, whoever it belongs to, in three calls, because EC2
// does not take an "or" of filters. Without instances nothing is asked.
func (f *Fleet) ListStatuses(ctx context.Context, running []string) ([]cluster.Impairment, []cluster.ScheduledChange,
	error) {
	var found []types.InstanceStatus
	var err error
	switch {
	case len(running) == 0:
		return nil, nil, nil
	case len(running) <= maxNamed:
		var out *ec2.DescribeInstanceStatusOutput
		out, err = f.EC2.DescribeInstanceStatus(ctx, &ec2.DescribeInstanceStatusInput{InstanceIds: running})
		if err == nil {
			found = out.InstanceStatuses
			break
		}
		if !awserrors.IsMissing(err) {
			return nil, nil, fmt.Errorf("describe instance status: %w", err)
		}
		fallthrough // one has gone since it was listed, and EC2 tells of none then
	default:
		if found, err = f.unhealthyStatuses(ctx); err != nil {
			return nil, nil, err
		}
	}
	failing, changes := distinctStatuses(found)
	return failing, changes, nil
}

// leaveCodes are the changes that a node is left for.
func leaveCodes() []string {
	return []string{string(types.EventCodeInstanceReboot), string(types.EventCodeSystemReboot),
		string(types.EventCodeSystemMaintenance),
		string(types.EventCodeInstanceRetirement), string(types.EventCodeInstanceStop)}
}

// unhealthyStatuses are the statuses of the region that say anything, once for each filter that selects them.
func (f *Fleet) unhealthyStatuses(ctx context.Context) ([]types.InstanceStatus, error) {
	impaired := []string{string(types.SummaryStatusImpaired)}
	filters := []types.Filter{
		{Name: aws.String("instance-status.status"), Values: impaired},
		{Name: aws.String("system-status.status"), Values: impaired},
		{Name: aws.String("event.code"), Values: leaveCodes()},
	}
	found := make([][]types.InstanceStatus, len(filters))
	g, ctx := errgroup.WithContext(ctx)
	for k, filter := range filters {
		g.Go(func() error {
			pages := ec2.NewDescribeInstanceStatusPaginator(f.EC2,
				&ec2.DescribeInstanceStatusInput{MaxResults: aws.Int32(pageSize), Filters: []types.Filter{filter}})
			for page, err := range paging.Bounded(ctx, maxPages, pages) {
				if err != nil {
					return fmt.Errorf("describe instance status by %s: %w", *filter.Name, err)
				}
				found[k] = append(found[k], page.InstanceStatuses...)
			}
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(found...), nil
}

// distinctStatuses returns what the statuses say that counts, each thing once.
func distinctStatuses(statuses []types.InstanceStatus) (failing []cluster.Impairment,
	changes []cluster.ScheduledChange) {
	for _, s := range statuses {
		id := aws.ToString(s.InstanceId)
		if since, failed := failedSince(s.InstanceStatus); failed {
			failing = append(failing, cluster.Impairment{Instance: id, Since: since})
		}
		if since, failed := failedSince(s.SystemStatus); failed {
			failing = append(failing, cluster.Impairment{Instance: id, System: true, Since: since})
		}
		for _, e := range s.Events {
			if !slices.Contains(leaveCodes(), string(e.Code)) || isOver(aws.ToString(e.Description)) {
				continue
			}
			changes = append(changes, cluster.ScheduledChange{Instance: id, Code: string(e.Code),
				At: aws.ToTime(e.NotBefore).UTC()})
		}
	}
	slices.SortFunc(failing, func(a, b cluster.Impairment) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.Since.Compare(b.Since),
			cmp.Compare(fmt.Sprint(a.System), fmt.Sprint(b.System)))
	})
	slices.SortFunc(changes, func(a, b cluster.ScheduledChange) int {
		return cmp.Or(cmp.Compare(a.Instance, b.Instance), a.At.Compare(b.At), cmp.Compare(a.Code, b.Code))
	})
	return slices.Compact(failing), slices.Compact(changes)
}

// isOver reports whether a scheduled change was made or called off. EC2 goes on telling of it for a week, with that
// before its description.
func isOver(description string) bool {
	return strings.HasPrefix(description, "[Completed]") || strings.HasPrefix(description, "[Canceled]")
}

// failedSince returns the time when the first of the check's parts failed that still does. A check that is not impaired
// as a whole does not count.
func failedSince(s *types.InstanceStatusSummary) (since time.Time, failed bool) {
	if s == nil || s.Status != types.SummaryStatusImpaired {
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
