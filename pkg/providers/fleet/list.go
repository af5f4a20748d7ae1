package fleet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"golang.org/x/sync/errgroup"

	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/launch"
)

// Limits of filters by id and by time.
const (
	idsPerList     = 100 // EC2 takes 200 values in all filters of a request
	minutesPerList = 60
	parallelLists  = 5
)

// ListInstances lists those of the cluster's instances that Joiner or Karpenter launched and the filter selects, sorted
// by id, recently terminated ones included. Of those launched since a time there may be others that were launched
// shortly before it.
func (f *Fleet) ListInstances(ctx context.Context, which cluster.InstanceFilter) ([]cluster.Instance, error) {
	filters := []types.Filter{
		{Name: aws.String("tag-key"), Values: []string{launch.TagNodePool}},
		{Name: aws.String("tag-key"), Values: []string{launch.TagNodeClass}}}
	if minutes := f.minutesSince(which.LaunchedSince); len(minutes) > 0 {
		filters = append(filters, types.Filter{Name: aws.String("launch-time"), Values: minutes})
	}
	if len(which.IDs) == 0 {
		return f.listInstances(ctx, filters...)
	}
	var mu sync.Mutex
	var out []cluster.Instance
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelLists)
	for part := range slices.Chunk(which.IDs, idsPerList) {
		// not by parameter: one id that EC2 does not know would refuse the whole call
		byID := types.Filter{Name: aws.String("instance-id"), Values: part}
		g.Go(func() error {
			some, err := f.listInstances(gctx, append(slices.Clone(filters), byID)...)
			mu.Lock()
			defer mu.Unlock()
			out = append(out, some...)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	slices.SortFunc(out, compareIDs)
	return out, nil
}

func compareIDs(a, b cluster.Instance) int { return strings.Compare(a.ID, b.ID) }

// minutesSince are the minutes from then on, as the filter launch-time takes them, one more for clocks that differ;
// none where they are too many for a request.
func (f *Fleet) minutesSince(then time.Time) (out []string) {
	if then.IsZero() {
		return nil
	}
	for t, end := then.UTC().Truncate(time.Minute), f.Now().Add(time.Minute); !t.After(end); t = t.Add(time.Minute) {
		if len(out) == minutesPerList {
			return nil
		}
		out = append(out, t.Format("2006-01-02T15:04")+"*")
	}
	return out
}

func (f *Fleet) listInstances(ctx context.Context, more ...types.Filter) ([]cluster.Instance, error) {
	filters := append([]types.Filter{{Name: aws.String("tag:" + launch.TagClusterName), Values: []string{f.Cluster}}},
		more...)
	var out []cluster.Instance
	pages := ec2.NewDescribeInstancesPaginator(f.EC2,
		&ec2.DescribeInstancesInput{Filters: filters, MaxResults: aws.Int32(pageSize)})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("describe instances: %w", err)
		}
		for _, r := range page.Reservations {
			for _, i := range r.Instances {
				out = append(out, instanceFrom(i))
			}
		}
	}
	slices.SortFunc(out, compareIDs)
	f.rememberTags(out)
	return out, nil
}

// listedTags are the keys of the tags of an instance as a list had them.
type listedTags struct {
	keys []string
	at   time.Time
}

// rememberTags keeps which tags instances have, so that naming those of a list needs no look of its own.
func (f *Fleet) rememberTags(listed []cluster.Instance) {
	f.looked.Lock()
	defer f.looked.Unlock()
	now := f.Now()
	maps.DeleteFunc(f.listed, func(_ string, t listedTags) bool { return now.Sub(t.at) >= listHolds })
	if f.listed == nil {
		f.listed = map[string]listedTags{}
	}
	for _, i := range listed {
		f.listed[i.ID] = listedTags{i.Tags, now}
	}
}

// tagKeys returns the keys of an instance's tags, from a list of less than a minute ago or else from EC2. found is
// false for an instance that EC2 does not know.
func (f *Fleet) tagKeys(ctx context.Context, id string) (have []string, found bool, err error) {
	f.looked.Lock()
	if t, listed := f.listed[id]; listed && f.Now().Sub(t.at) < listHolds {
		have, found = t.keys, true
	}
	f.looked.Unlock()
	if found {
		return have, true, nil
	}
	all, err := f.naming.askTogether(ctx, id, idsPerList, f.readTagKeys)
	if err != nil {
		return nil, false, err
	}
	have, found = all[id]
	return have, found, nil
}
