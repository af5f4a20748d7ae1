package discovery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/aws/smithy-go/middleware"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/lists"
	"joiner.sh/pkg/model/paging"
	"joiner.sh/pkg/nodeclaim/awserrors"
	"joiner.sh/pkg/nodeclass"
)

// Limits of lists.
const (
	subnetPage = 500
	groupPage  = 500
	maxPages   = 50
)

// ClassResolver finds what the selectors of an EC2NodeClass stand for.
type ClassResolver struct {
	EC2     *ec2.Client
	SSM     *ssm.Client
	IAM     *iam.Client
	Region  string
	Cluster string
	Version string // of Kubernetes, such as 1.36
	CIDR    string // of the cluster's services
	// Isolated rules out calls of IAM, which has no private endpoint (setting isolatedVPC).
	Isolated bool
	Now      func() time.Time
}

// FindAll looks everything up for one class. A look-up that fails leaves its error in the result and does not stop the
// others.
func (r *ClassResolver) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	out := nodeclass.Resolved{ServiceCIDR: r.CIDR, Region: r.Region}
	inTime, end := halfTheTime(ctx) // SSM may be silent, and EC2 and IAM are asked after it
	out.Images, out.ImagesErr = r.findImages(inTime, c)
	end()
	out.Subnets, out.SubnetsErr = r.findSubnets(ctx, c)
	out.SecurityGroups, out.GroupsErr = r.findSecurityGroups(ctx, c)
	out.Reservations, out.ReservationsErr = r.findReservations(ctx, c)
	out.Placement, out.PlacementErr = r.findPlacementGroup(ctx, c)
	out.Profile, out.ProfileErr = r.ensureProfile(ctx, c)
	return out
}

// halfTheTime is the context with half of the time left, for a call whose answer others do not need.
func halfTheTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, limited := ctx.Deadline(); limited {
		return context.WithTimeout(ctx, time.Until(deadline)/2)
	}
	return context.WithCancel(ctx)
}

// selections are the filters of the Describe calls of a selector. One that would have none selects nothing, and is no
// call: EC2 would answer with all that there is in the region.
type selections [][]types.Filter

func (s *selections) add(filters ...types.Filter) {
	if len(filters) > 0 {
		*s = append(*s, filters)
	}
}

// errUnfiltered is the refusal of onlyFiltered.
var errUnfiltered = errors.New("a selector may not ask EC2 for everything: the call has no filter and no id")

// onlyFiltered refuses the Describe call of a selector that has neither an id nor a filter beside the state. It holds
// whatever is wrong with the terms of the class, or with who reads them.
func onlyFiltered(o *ec2.Options) {
	o.APIOptions = append(o.APIOptions, func(stack *middleware.Stack) error {
		return stack.Initialize.Add(middleware.InitializeMiddlewareFunc("OnlyFiltered", func(ctx context.Context,
			in middleware.InitializeInput, next middleware.InitializeHandler) (middleware.InitializeOutput,
			middleware.Metadata, error) {
			if !isFiltered(in.Parameters) {
				return middleware.InitializeOutput{}, middleware.Metadata{}, errUnfiltered
			}
			return next.HandleInitialize(ctx, in)
		}), middleware.Before)
	})
}

// isFiltered reports whether the input of a Describe call names ids, or a filter beside the state. Of a call that no
// selector makes it is false.
func isFiltered(input any) bool {
	var ids []string
	var filters []types.Filter
	switch in := input.(type) {
	case *ec2.DescribeSubnetsInput:
		ids, filters = in.SubnetIds, in.Filters
	case *ec2.DescribeSecurityGroupsInput:
		ids, filters = in.GroupIds, in.Filters
	case *ec2.DescribeImagesInput:
		ids, filters = in.ImageIds, in.Filters
	case *ec2.DescribeCapacityReservationsInput:
		ids, filters = in.CapacityReservationIds, in.Filters
	}
	return len(ids) > 0 || slices.ContainsFunc(filters, func(f types.Filter) bool {
		return aws.ToString(f.Name) != filterState && len(f.Values) > 0
	})
}

// filterState is the filter that calls have whatever the class selects.
const filterState = "state"

// findSubnets: terms are ORed; an id beats the tags of its term; all ids go into one query.
func (r *ClassResolver) findSubnets(ctx context.Context, c *awsv1.EC2NodeClass) ([]nodeclass.Subnet, error) {
	var ids []string
	var queries selections
	for _, t := range c.Spec.SubnetSelectorTerms {
		if t.ID != "" {
			ids = append(ids, t.ID)
		} else {
			queries.add(tagFilters(t.Tags)...)
		}
	}
	if len(ids) > 0 {
		queries.add(ec2Filter("subnet-id", ids...))
	}
	found := map[string]nodeclass.Subnet{}
	for _, q := range queries {
		pages := ec2.NewDescribeSubnetsPaginator(r.EC2,
			&ec2.DescribeSubnetsInput{Filters: q, MaxResults: aws.Int32(subnetPage)})
		for page, err := range paging.Bounded(ctx, maxPages, pages, onlyFiltered) {
			if err != nil {
				return nil, wrapLookup("describe subnets", err)
			}
			for _, s := range page.Subnets {
				id := aws.ToString(s.SubnetId)
				found[id] = nodeclass.Subnet{ID: id, Zone: aws.ToString(s.AvailabilityZone),
					ZoneID: aws.ToString(s.AvailabilityZoneId),
					Free:   int64(aws.ToInt32(s.AvailableIpAddressCount))}
			}
		}
	}
	return filterValues(found), nil
}

// findSecurityGroups: inside a term an id beats a name, and a name beats tags.
func (r *ClassResolver) findSecurityGroups(ctx context.Context, c *awsv1.EC2NodeClass) ([]awsv1.SecurityGroup, error) {
	var ids, names []string
	var queries selections
	for _, t := range c.Spec.SecurityGroupSelectorTerms {
		switch {
		case t.ID != "":
			ids = append(ids, t.ID)
		case t.Name != "":
			names = append(names, t.Name)
		default:
			queries.add(tagFilters(t.Tags)...)
		}
	}
	if len(ids) > 0 {
		queries.add(ec2Filter("group-id", ids...))
	}
	if len(names) > 0 {
		queries.add(ec2Filter("group-name", names...))
	}
	found := map[string]awsv1.SecurityGroup{}
	for _, q := range queries {
		pages := ec2.NewDescribeSecurityGroupsPaginator(r.EC2,
			&ec2.DescribeSecurityGroupsInput{Filters: q, MaxResults: aws.Int32(groupPage)})
		for page, err := range paging.Bounded(ctx, maxPages, pages, onlyFiltered) {
			if err != nil {
				return nil, wrapLookup("describe security groups", err)
			}
			for _, g := range page.SecurityGroups {
				id := aws.ToString(g.GroupId)
				found[id] = awsv1.SecurityGroup{ID: id, Name: aws.ToString(g.GroupName)}
			}
		}
	}
	return filterValues(found), nil
}

// wrapLookup wraps the error of a look-up. What AWS does not understand is a *nodeclass.TermError: the user's to mend.
func wrapLookup(verb string, err error) error {
	if code := awserrors.CodeOf(err); awserrors.IsMalformed(code) {
		return &nodeclass.TermError{Why: verb + ": AWS does not take a selector term: " + code + ": " +
			awserrors.MessageOf(err)}
	}
	return fmt.Errorf("%s: %w", verb, err)
}

// tagFilters: the value * means that the key exists; any other value is EC2's own, wildcards included.
func tagFilters(tags map[string]string) []types.Filter {
	var out []types.Filter
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		if tags[k] == "*" {
			out = append(out, ec2Filter("tag-key", k))
		} else {
			out = append(out, ec2Filter("tag:"+k, tags[k]))
		}
	}
	return out
}

func ec2Filter(name string, values ...string) types.Filter {
	return types.Filter{Name: aws.String(name), Values: values}
}

func filterValues[T any](m map[string]T) []T {
	return lists.Of(slices.Sorted(maps.Keys(m)), func(k string) T { return m[k] })
}
