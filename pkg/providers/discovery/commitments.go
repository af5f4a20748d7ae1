package discovery

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/savingsplans"
	plantypes "github.com/aws/aws-sdk-go-v2/service/savingsplans/types"

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/paging"
)

// Limits of the lists about commitments.
const (
	plansPage     = 100
	ratesPage     = 1000
	instancesPage = 1000
	ratesEvery    = 12 * time.Hour // the rates of a plan never change, but new instance types come
)

// accountReader reads what the account is committed to. Both APIs tell what is bought; what of it is used is counted
// from the instances that run, because Cost Explorer tells that a day later only, for 0.01 USD a question, and with the
// nodes of this cluster in it.
type accountReader struct {
	plans   *savingsplans.Client
	cluster string
	share   float64
}

// WithCommitments has the Savings Plans and Reserved Instances of the account read as well. Nodes of the cluster are
// not counted among what runs elsewhere. share, up to 1, is the part of the Savings Plans that is not used outside EC2
// in this region. An isolated market reads Reserved Instances only: the API of Savings Plans is one for the world.
func (r *CatalogRefresher) WithCommitments(cfg aws.Config, cluster string, share float64) *CatalogRefresher {
	r.account = &accountReader{plans: savingsplans.NewFromConfig(cfg), cluster: cluster, share: share}
	return r
}

// withCommitments are the commitments and what runs elsewhere, as they are now. A part that cannot be read makes the
// whole stay as it was: with half of it something would be counted twice.
func (r *CatalogRefresher) withCommitments(ctx context.Context, c instancetypes.Catalog,
	now time.Time) (instancetypes.Catalog, error) {
	reserved, err := r.reservedInstances(ctx, c)
	if err != nil {
		return c, err
	}
	old := map[string]instancetypes.Commitment{}
	if !isDue(c.RatesTime, now, ratesEvery) {
		for _, k := range c.Commitments {
			old[k.ID] = k
		}
	}
	var plans []instancetypes.Commitment
	read := false
	if !r.isolated {
		if plans, read, err = r.savingsPlans(ctx, old); err != nil {
			return c, err
		}
	}
	elsewhere, err := r.countForeignUse(ctx)
	if err != nil {
		return c, err
	}
	if read || c.RatesTime.IsZero() {
		c.RatesTime = now
	}
	c.Commitments, c.Elsewhere = slices.Concat(reserved, plans), elsewhere
	return c, nil
}

// reservedInstances are the active ones for Linux on shared tenancy, those alike as one, sorted by id.
func (r *CatalogRefresher) reservedInstances(ctx context.Context, c instancetypes.Catalog) ([]instancetypes.Commitment,
	error) {
	out, err := r.ec2.DescribeReservedInstances(ctx,
		&ec2.DescribeReservedInstancesInput{Filters: []types.Filter{ec2Filter("state",
			string(types.ReservedInstanceStateActive))}})
	if err != nil {
		return nil, fmt.Errorf("describe reserved instances: %w", err)
	}
	all := map[string]instancetypes.Commitment{}
	for _, reserved := range out.ReservedInstances {
		linux := reserved.ProductDescription == types.RIProductDescriptionLinuxUnix ||
			reserved.ProductDescription == types.RIProductDescriptionLinuxUnixAmazonVpc
		if !linux || reserved.InstanceTenancy != types.TenancyDefault {
			continue
		}
		k := instancetypes.Commitment{Type: string(reserved.InstanceType),
			Room: int64(aws.ToInt32(reserved.InstanceCount))}
		k.ID = "ri/" + k.Type
		if reserved.Scope == types.ScopeAvailabilityZone {
			k.Zone = aws.ToString(reserved.AvailabilityZone)
			k.ID += "/" + k.Zone
		} else if f, ok := c.Find(k.Type); ok && instancetypes.NormalizedSize(k.Type) > 0 && isSizeFlexible(f) {
			k.Flexible, k.Room = true, k.Room*instancetypes.NormalizedSize(k.Type)
			family, _, _ := strings.Cut(k.Type, ".")
			k.ID = "ri/" + family
		}
		if had, ok := all[k.ID]; ok {
			k.Room, k.Type = k.Room+had.Room, min(k.Type, had.Type)
		}
		all[k.ID] = k
	}
	return slices.SortedFunc(maps.Values(all),
		func(a, b instancetypes.Commitment) int { return cmp.Compare(a.ID, b.ID) }), nil
}

// isSizeFlexible reports whether regional Reserved Instances of the type are for every size of its family. EC2 makes no
// such promise for most families with accelerators, nor for those of HPC; where it does so all the same, too little is
// reckoned with.
func isSizeFlexible(f instancetypes.Facts) bool {
	return len(f.GPUs)+len(f.Neuron)+len(f.InferenceAccelerators)+len(f.MediaAccelerators)+len(f.FPGAs) == 0 &&
		!strings.HasPrefix(f.Name, "hpc")
}

// savingsPlans are the active ones that cover instances of the region, sorted by id; of those in old the rates are
// known. read says whether any rates were asked for.
func (r *CatalogRefresher) savingsPlans(ctx context.Context,
	old map[string]instancetypes.Commitment) (out []instancetypes.Commitment, read bool, err error) {
	in := &savingsplans.DescribeSavingsPlansInput{
		States: []plantypes.SavingsPlanState{plantypes.SavingsPlanStateActive}, MaxResults: aws.Int32(plansPage)}
	for n := 0; ; n++ {
		if n == maxPages {
			return nil, read, fmt.Errorf("describe savings plans: %w", &paging.BoundError{Most: maxPages})
		}
		page, err := r.account.plans.DescribeSavingsPlans(ctx, in)
		if err != nil {
			return nil, read, fmt.Errorf("describe savings plans: %w", err)
		}
		for _, p := range page.SavingsPlans {
			k, asked, err := r.savingsPlan(ctx, p, old)
			if err != nil {
				return nil, read, err
			}
			read = read || asked
			if len(k.Rates) > 0 && k.Room > 0 {
				out = append(out, k)
			}
		}
		if aws.ToString(page.NextToken) == "" {
			break
		}
		in.NextToken = page.NextToken
	}
	slices.SortFunc(out, func(a, b instancetypes.Commitment) int { return cmp.Compare(a.ID, b.ID) })
	return out, read, nil
}

func (r *CatalogRefresher) savingsPlan(ctx context.Context, p plantypes.SavingsPlan,
	old map[string]instancetypes.Commitment) (k instancetypes.Commitment, asked bool, err error) {
	k.ID = aws.ToString(p.SavingsPlanId)
	ec2Only := p.SavingsPlanType == plantypes.SavingsPlanTypeEc2Instance
	if !ec2Only && p.SavingsPlanType != plantypes.SavingsPlanTypeCompute || ec2Only &&
		aws.ToString(p.Region) != r.region {
		return k, false, nil
	}
	usd, err := strconv.ParseFloat(aws.ToString(p.Commitment), 64)
	if err != nil {
		return k, false, fmt.Errorf("read commitment of savings plan %s: %w", k.ID, err)
	}
	k.Room = int64(usd * r.account.share * 1e6)
	if had := old[k.ID]; len(had.Rates) > 0 {
		k.Rates = had.Rates
		return k, false, nil
	}
	k.Rates, err = r.planRates(ctx, k.ID)
	return k, true, err
}

// planRates returns what a plan takes for an hour of each type of the region, for Linux on shared tenancy.
func (r *CatalogRefresher) planRates(ctx context.Context, plan string) (map[string]float64, error) {
	by := func(name plantypes.SavingsPlanRateFilterName, value string) plantypes.SavingsPlanRateFilter {
		return plantypes.SavingsPlanRateFilter{Name: name, Values: []string{value}}
	}
	in := &savingsplans.DescribeSavingsPlanRatesInput{SavingsPlanId: aws.String(plan), MaxResults: aws.Int32(ratesPage),
		Filters: []plantypes.SavingsPlanRateFilter{
			by(plantypes.SavingsPlanRateFilterNameRegion, r.region),
			by(plantypes.SavingsPlanRateFilterNameTenancy, "shared"),
			by(plantypes.SavingsPlanRateFilterNameProductDescription, string(types.RIProductDescriptionLinuxUnix)),
			by(plantypes.SavingsPlanRateFilterNameProductType, string(plantypes.SavingsPlanProductTypeEc2))}}
	out := map[string]float64{}
	for n := 0; ; n++ {
		if n == maxPages {
			return nil, fmt.Errorf("describe rates of savings plan %s: %w", plan, &paging.BoundError{Most: maxPages})
		}
		page, err := r.account.plans.DescribeSavingsPlanRates(ctx, in)
		if err != nil {
			return nil, fmt.Errorf("describe rates of savings plan %s: %w", plan, err)
		}
		for _, rate := range page.SearchResults {
			usd, err := strconv.ParseFloat(aws.ToString(rate.Rate), 64)
			if err != nil {
				return nil, fmt.Errorf("read rates of savings plan %s: %w", plan, err)
			}
			for _, p := range rate.Properties {
				if p.Name == plantypes.SavingsPlanRatePropertyKeyInstanceType &&
					rate.Unit == plantypes.SavingsPlanRateUnitHours && usd > 0 {
					out[aws.ToString(p.Value)] = usd
				}
			}
		}
		if aws.ToString(page.NextToken) == "" {
			return out, nil
		}
		in.NextToken = page.NextToken
	}
}

// countForeignUse counts what draws on commitments and is no node of ours: instances that run on demand, and room in
// capacity reservations that nobody uses, which is charged alike. Reservations of other accounts that are shared with
// this one count too, which leaves less.
func (r *CatalogRefresher) countForeignUse(ctx context.Context) ([]instancetypes.RunningCount, error) {
	count := map[spotPlace]int64{}
	pages := ec2.NewDescribeInstancesPaginator(r.ec2,
		&ec2.DescribeInstancesInput{MaxResults: aws.Int32(instancesPage), Filters: []types.Filter{
			ec2Filter("instance-state-name", string(types.InstanceStateNamePending),
				string(types.InstanceStateNameRunning))}})
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return nil, fmt.Errorf("describe instances: %w", err)
		}
		for _, reservation := range page.Reservations {
			for i := range reservation.Instances {
				if x := &reservation.Instances[i]; onDemandLinux(x) && !r.account.isOurNode(x) {
					count[spotPlace{string(x.InstanceType), aws.ToString(x.Placement.AvailabilityZone)}]++
				}
			}
		}
	}
	idle := ec2.NewDescribeCapacityReservationsPaginator(r.ec2,
		&ec2.DescribeCapacityReservationsInput{MaxResults: aws.Int32(instancesPage),
			Filters: []types.Filter{ec2Filter("state", string(types.CapacityReservationStateActive))}})
	for page, err := range paging.Bounded(ctx, maxPages, idle) {
		if err != nil {
			return nil, fmt.Errorf("describe capacity reservations: %w", err)
		}
		for _, reservation := range page.CapacityReservations {
			if n := aws.ToInt32(reservation.AvailableInstanceCount); n > 0 &&
				reservation.ReservationType != types.CapacityReservationTypeCapacityBlock &&
				reservation.Tenancy != types.CapacityReservationTenancyDedicated {
				count[spotPlace{aws.ToString(reservation.InstanceType),
					aws.ToString(reservation.AvailabilityZone)}] += int64(n)
			}
		}
	}
	out := make([]instancetypes.RunningCount, 0, len(count))
	for where, n := range count { // sorted below
		out = append(out, instancetypes.RunningCount{Type: where.name, Zone: where.zone, Count: n})
	}
	slices.SortFunc(out, func(a, b instancetypes.RunningCount) int {
		return cmp.Or(cmp.Compare(a.Type, b.Type), cmp.Compare(a.Zone, b.Zone))
	})
	return out, nil
}

// onDemandLinux reports whether the instance is charged as commitments for Linux and shared tenancy are for.
func onDemandLinux(i *types.Instance) bool {
	shared := i.Placement != nil && (i.Placement.Tenancy == types.TenancyDefault || i.Placement.Tenancy == "")
	return shared && i.InstanceLifecycle == "" && i.Platform != types.PlatformValuesWindows &&
		cmp.Or(aws.ToString(i.PlatformDetails), "Linux/UNIX") == "Linux/UNIX"
}

// isOurNode reports whether the instance is a node that a NodePool of the cluster made: decisions count those as they
// are at that time.
func (a *accountReader) isOurNode(i *types.Instance) bool {
	tag := func(key string) (string, bool) {
		for _, t := range i.Tags {
			if aws.ToString(t.Key) == key {
				return aws.ToString(t.Value), true
			}
		}
		return "", false
	}
	name, _ := tag(awsv1.TagClusterName)
	_, pool := tag(awsv1.TagNodePool)
	return name == a.cluster && pool
}
