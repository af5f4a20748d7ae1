package discovery

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/awserrors"
)

// How long instance types and on-demand prices are used before they are read again. Spot prices are read at every
// refresh.
const (
	typesEvery    = 12 * time.Hour
	onDemandEvery = 12 * time.Hour
	onDemandRetry = time.Hour
)

// CatalogRefresher keeps the stored catalog up to date. It holds no state: when each part was read stands in the
// object.
type CatalogRefresher struct {
	ec2      *ec2.Client
	pricing  *pricing.Client
	store    *CatalogStore
	region   string
	isolated bool
	account  *accountReader // nil where commitments are not read
	now      func() time.Time
}

// NewMarket makes a market of the region of cfg. An isolated one never asks for the price list, which has no private
// endpoint.
func NewMarket(cfg aws.Config, s *CatalogStore, isolated bool, now func() time.Time) *CatalogRefresher {
	return &CatalogRefresher{ec2: ec2.NewFromConfig(cfg), store: s, region: cfg.Region, isolated: isolated, now: now,
		pricing: pricing.NewFromConfig(cfg, func(o *pricing.Options) { o.Region = priceListRegion(cfg.Region) })}
}

// Refresh reads what is due and stores it. A part that cannot be read stays as it was, is tried again by the next
// refresh (the price list an hour later), and does not stop the others. A stored catalog that nobody may read is
// replaced. It may be repeated.
func (r *CatalogRefresher) Refresh(ctx context.Context) (did string, err error) {
	static, err := r.store.BuiltInCatalog()
	if err != nil {
		return "", err
	}
	var done []string
	var errs []error
	c, err := r.store.ReadStored(ctx)
	switch {
	case err != nil && awserrors.IsUnreadable(awserrors.CodeOf(err)): // such as after kmsKey became another
		errs = append(errs, fmt.Errorf("the stored catalog cannot be read, so that all of it is read anew: %w", err))
	case err != nil:
		return "", fmt.Errorf("refresh catalog: %w", err)
	}
	foreign := r.store.isForeign()
	if foreign {
		errs = append(errs, errors.New("somebody else wrote the stored catalog: all of it is read anew; who may write to the bucket?"))
	}
	if foreign || c.Region != r.region {
		c = startCatalog(static, r.region)
	}
	now := r.now()
	note := func(what string, n int, err error) bool {
		if err != nil {
			errs = append(errs, err)
			return false
		}
		done = append(done, fmt.Sprintf("%d %s", n, what))
		return true
	}
	if isDue(c.TypesTime, now, typesEvery) {
		facts, err := r.readTypes(ctx)
		if note("instance types", len(facts), err) {
			c = withTypes(c, facts, static)
			c.TypesTime = now
		}
	}
	if r.listsPrices() && arePricesDue(c, now) {
		c = r.withPriceList(ctx, c, now, note)
	}
	spot, err := r.readSpotPrices(ctx, now)
	if note("spot prices", len(spot.prices), err) {
		c = withSpot(c, spot)
		c.SpotTime = now
	}
	c = r.withAccount(ctx, c, now, note)
	if len(done) == 0 || len(c.Types) == 0 {
		return "", errors.Join(errs...)
	}
	c.Schema, c.Region, c.Time = instancetypes.Schema, r.region, now
	if err := r.store.PutCatalog(ctx, c); err != nil {
		return "", errors.Join(append(errs, err)...)
	}
	return "catalog stored: read " + strings.Join(done, ", "), errors.Join(errs...)
}

// noteRead takes down that so many of something were read, and says whether they were.
type noteRead func(what string, n int, err error) bool

// withPriceList lays the price list over the prices that were read before.
func (r *CatalogRefresher) withPriceList(ctx context.Context, c instancetypes.Catalog, now time.Time,
	note noteRead) instancetypes.Catalog {
	ctx, end := halfTheTime(ctx)
	defer end()
	prices, err := r.onDemand(ctx)
	c.OnDemandFailed = now
	if note("on-demand prices", len(prices), err) {
		c = r.withDiskPrices(ctx, withOnDemand(c, prices), note)
		c.OnDemandTime, c.OnDemandFailed = now, time.Time{}
	}
	return c
}

// withAccount puts into the catalog what the account has committed itself to, if that is to be read.
func (r *CatalogRefresher) withAccount(ctx context.Context, c instancetypes.Catalog, now time.Time,
	note noteRead) instancetypes.Catalog {
	if r.account == nil {
		c.Commitments, c.Elsewhere, c.RatesTime = nil, nil, time.Time{}
		return c
	}
	ctx, end := halfTheTime(ctx)
	defer end()
	read, err := r.withCommitments(ctx, c, now)
	if note("commitments", len(read.Commitments), err) {
		return read
	}
	return c
}

// listsPrices reports whether the price list can be asked: not from an isolated VPC.
func (r *CatalogRefresher) listsPrices() bool { return !r.isolated && hasPriceList(r.region) }

// hasPriceList reports whether there is a price list of the region, which the partitions aws-cn and aws have. Names of
// regions have three parts there and four in all other partitions.
func hasPriceList(region string) bool { return strings.Count(region, "-") == 2 }

// arePricesDue reports whether the price list is to be asked: of one that did not answer not before an hour is over.
func arePricesDue(c instancetypes.Catalog, now time.Time) bool {
	return isDue(c.OnDemandTime, now, onDemandEvery) && isDue(c.OnDemandFailed, now, onDemandRetry)
}

func isDue(last, now time.Time, every time.Duration) bool {
	return last.IsZero() || now.Sub(last) >= every || last.After(now)
}

// startCatalog is the catalog before anything was read: the snapshot, if it is of this region.
func startCatalog(static instancetypes.Catalog, region string) instancetypes.Catalog {
	if static.Region != region {
		return instancetypes.Catalog{Region: region}
	}
	return instancetypes.Catalog{Region: region, Zones: static.Zones, Types: static.Types}
}

// withTypes replaces the facts. Prices are kept; a type without one gets the snapshot's until the price list was read.
// What no API tells comes from the snapshot too.
func withTypes(c instancetypes.Catalog, facts []instancetypes.Facts,
	static instancetypes.Catalog) instancetypes.Catalog {
	types := slices.Clone(facts)
	for i := range types {
		f := &types[i]
		if known, ok := static.Find(f.Name); ok {
			f.BandwidthMbps, f.BranchENIs, f.OnDemandUSD = known.BandwidthMbps, known.BranchENIs, known.OnDemandUSD
		}
		if old, ok := c.Find(f.Name); ok {
			f.SpotUSD = old.SpotUSD
			if old.OnDemandUSD > 0 {
				f.OnDemandUSD = old.OnDemandUSD
			}
		}
	}
	c.Types = types
	return c
}
