package discovery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/model/paging"
)

// Limits of price lists.
const (
	productsPage = 100
	spotPage     = 1000
	maxSpotPages = 200
)

// priceListRegion returns the region where the price list of a region is asked for.
func priceListRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	}
	return "us-east-1"
}

// priceListCurrency returns the currency of the region's price list.
func priceListCurrency(region string) string {
	if strings.HasPrefix(region, "cn-") {
		return "CNY"
	}
	return "USD"
}

// onDemand lists the price of every type in its usual tenancy: shared, and dedicated for bare metal. It fails when
// either list is empty, which no region's is. Local Zones have prices of their own, which are higher, in lists of their
// own: there a type counts at the price of the region, as with Karpenter. Spot prices are those of each zone.
func (r *CatalogRefresher) onDemand(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	for _, q := range [][2]string{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		n, err := r.readPriceList(ctx, q[0], q[1], out)
		if err != nil {
			return nil, fmt.Errorf("get products (%s): %w", q[1], err)
		}
		if n == 0 {
			return nil, fmt.Errorf("get products (%s): the price list of %s is empty", q[1], r.region)
		}
	}
	return out, nil
}

// readPriceList adds the prices of one list to out and returns how many there were.
func (r *CatalogRefresher) readPriceList(ctx context.Context, tenancy, family string, out map[string]float64) (int,
	error) {
	n := 0
	err := r.listProducts(ctx, func(p product) error {
		name, price, err := p.instancePrice(priceListCurrency(r.region))
		if name != "" && price > 0 {
			out[name] = price
			n++
		}
		return err
	}, [][2]string{{"serviceCode", "AmazonEC2"}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"},
		{"capacitystatus", "Used"}, {"marketoption", "OnDemand"}, {"tenancy", tenancy}, {"productFamily", family}})
	return n, err
}

// listProducts gives take every entry of the region's price list that meets the filters, each a field and its value.
// One that cannot be read, or not be taken, is left out, and is an error where no other can be.
func (r *CatalogRefresher) listProducts(ctx context.Context, take func(product) error, filters [][2]string) error {
	in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(productsPage)}
	for _, f := range slices.Concat([][2]string{{"regionCode", r.region}}, filters) {
		in.Filters = append(in.Filters, pricetypes.Filter{Type: pricetypes.FilterTypeTermMatch, Field: aws.String(f[0]),
			Value: aws.String(f[1])})
	}
	pages := pricing.NewGetProductsPaginator(r.pricing, in)
	taken := false
	var unread error // the last one
	for page, err := range paging.Bounded(ctx, maxPages, pages) {
		if err != nil {
			return err
		}
		for _, text := range page.PriceList {
			p, err := readProduct(text)
			if err == nil {
				err = take(p)
			}
			if err != nil {
				unread = err
			} else {
				taken = true
			}
		}
	}
	if taken {
		return nil
	}
	return unread
}

// product is an entry of the price list.
type product struct {
	Product struct {
		Attributes struct{ InstanceType, VolumeAPIName string }
	}
	Terms struct {
		OnDemand map[string]struct {
			PriceDimensions map[string]priceDimension
		}
	}
}

type priceDimension struct {
	Unit, BeginRange string
	PricePerUnit     map[string]string
}

func readProduct(text string) (p product, err error) {
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return p, fmt.Errorf("read product: %w", err)
	}
	return p, nil
}

// priceDimensions are all of the entry, in the order of their codes.
func (p product) priceDimensions() []priceDimension {
	var out []priceDimension
	for _, term := range slices.Sorted(maps.Keys(p.Terms.OnDemand)) {
		dimensions := p.Terms.OnDemand[term].PriceDimensions
		for _, d := range slices.Sorted(maps.Keys(dimensions)) {
			out = append(out, dimensions[d])
		}
	}
	return out
}

// instancePrice is the instance type of the entry and its last price that is not zero.
func (p product) instancePrice(currency string) (name string, price float64, err error) {
	for _, d := range p.priceDimensions() {
		text, ok := d.PricePerUnit[currency]
		if !ok {
			continue
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil {
			return "", 0, fmt.Errorf("read price of %s: %w", p.Product.Attributes.InstanceType, err)
		}
		if v > 0 {
			price = v
		}
	}
	return p.Product.Attributes.InstanceType, price, nil
}

// withOnDemand lays prices over those that are known.
func withOnDemand(c instancetypes.Catalog, prices map[string]float64) instancetypes.Catalog {
	c.Types = slices.Clone(c.Types)
	for i := range c.Types {
		if p, ok := prices[c.Types[i].Name]; ok {
			c.Types[i].OnDemandUSD = p
		}
	}
	return c
}

// spotPlace is a type in a zone that sells it as spot.
type spotPlace struct{ name, zone string }

// spotMarket holds what the spot price history says: prices in USD per hour, and the ids of the zones.
type spotMarket struct {
	prices  map[spotPlace]float64
	zoneIDs map[string]string
}

// readSpotPrices reads the prices in force: EC2 tells the one that held at the start time, and that is now. A price
// that cannot be read is left out, and is an error where no other can be read either.
func (r *CatalogRefresher) readSpotPrices(ctx context.Context, now time.Time) (spotMarket, error) {
	out := spotMarket{prices: map[spotPlace]float64{}, zoneIDs: map[string]string{}}
	at := map[spotPlace]time.Time{}
	var unread error // the last one
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(r.ec2,
		&ec2.DescribeSpotPriceHistoryInput{StartTime: aws.Time(now), MaxResults: aws.Int32(spotPage),
			ProductDescriptions: []string{string(types.RIProductDescriptionLinuxUnix),
				string(types.RIProductDescriptionLinuxUnixAmazonVpc)}})
	for page, err := range paging.Bounded(ctx, maxSpotPages, pages) {
		if err != nil {
			return spotMarket{}, fmt.Errorf("describe spot price history: %w", err)
		}
		for _, p := range page.SpotPriceHistory {
			where := spotPlace{string(p.InstanceType), aws.ToString(p.AvailabilityZone)}
			if id := aws.ToString(p.AvailabilityZoneId); id != "" {
				out.zoneIDs[where.zone] = id
			}
			price, err := strconv.ParseFloat(aws.ToString(p.SpotPrice), 64)
			if err != nil {
				unread = fmt.Errorf("read spot price of %s in %s: %w", where.name, where.zone, err)
				continue
			}
			if _, seen := out.prices[where]; seen && !aws.ToTime(p.Timestamp).After(at[where]) {
				continue
			}
			out.prices[where], at[where] = price, aws.ToTime(p.Timestamp)
		}
	}
	if len(out.prices) == 0 {
		return out, errors.Join(errors.New("describe spot price history: it has no price"), unread)
	}
	return out, nil
}

// withSpot lays spot prices over those that were read before; those of the snapshot go.
func withSpot(c instancetypes.Catalog, s spotMarket) instancetypes.Catalog {
	zones := maps.Clone(c.Zones)
	if zones == nil {
		zones = map[string]string{}
	}
	maps.Copy(zones, s.zoneIDs)
	byType := map[string]map[string]float64{}
	for where, price := range s.prices {
		if byType[where.name] == nil {
			byType[where.name] = map[string]float64{}
		}
		byType[where.name][where.zone] = price
	}
	types := slices.Clone(c.Types)
	for i := range types {
		f := &types[i]
		prices := map[string]float64{}
		if !c.SpotTime.IsZero() {
			maps.Copy(prices, f.SpotUSD)
		}
		maps.Copy(prices, byType[f.Name])
		if f.SpotUSD = prices; len(prices) == 0 {
			f.SpotUSD = nil
		}
	}
	c.Types, c.Zones = types, zones
	return c
}
