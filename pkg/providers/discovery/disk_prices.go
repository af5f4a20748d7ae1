package discovery

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricetypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"joiner/pkg/model/instancetypes"
)

// mibPerGiB turns the price list's GiBps-mo into MiB/s.
const mibPerGiB = 1024

// withDiskPrices is the catalog with what volumes cost now, or as it is where that cannot be read, which it notes.
func (m *CatalogRefresher) withDiskPrices(ctx context.Context, c instancetypes.Catalog,
	note func(what string, n int, err error) bool) instancetypes.Catalog {
	disks, err := m.readDiskPrices(ctx)
	if note("volume prices", len(disks), err) {
		c.DiskPrices = disks
	}
	return c
}

// readDiskPrices lists what EBS volumes cost in the region, by volume type, in USD per month (in China in CNY). Of a
// price in tiers it takes the first. It fails when no volume has a price, which no region's list says.
func (m *CatalogRefresher) readDiskPrices(ctx context.Context) (map[string]instancetypes.DiskPrice, error) {
	out := map[string]instancetypes.DiskPrice{}
	for _, family := range []string{"Storage", "System Operation", "Provisioned Throughput"} {
		in := &pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), MaxResults: aws.Int32(productsPage)}
		for _, f := range [][2]string{{"regionCode", m.region}, {"productFamily", family}} {
			in.Filters = append(in.Filters, pricetypes.Filter{Type: pricetypes.FilterTypeTermMatch,
				Field: aws.String(f[0]), Value: aws.String(f[1])})
		}
		pages := pricing.NewGetProductsPaginator(m.pricing, in)
		for i := 0; pages.HasMorePages(); i++ {
			if i == maxPages {
				return nil, fmt.Errorf("get products (%s): more than %d pages", family, maxPages)
			}
			page, err := pages.NextPage(ctx)
			if err != nil {
				return nil, fmt.Errorf("get products (%s): %w", family, err)
			}
			for _, text := range page.PriceList {
				if err := addDiskPrice(out, text, priceListCurrency(m.region)); err != nil {
					return nil, err
				}
			}
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("get products (Storage): the price list of %s has no volumes", m.region)
	}
	return out, nil
}

// addDiskPrice adds what an entry of the price list says of a type of volume, if it does, by its unit: GB-Mo, IOPS-Mo
// or GiBps-mo.
func addDiskPrice(out map[string]instancetypes.DiskPrice, text, currency string) error {
	var p struct {
		Product struct {
			Attributes struct{ VolumeAPIName string }
		}
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]priceDimension
			}
		}
	}
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		return fmt.Errorf("read product: %w", err)
	}
	name := p.Product.Attributes.VolumeAPIName
	if name == "" {
		return nil
	}
	price := out[name]
	for _, term := range slices.Sorted(maps.Keys(p.Terms.OnDemand)) {
		dimensions := p.Terms.OnDemand[term].PriceDimensions
		for _, key := range slices.Sorted(maps.Keys(dimensions)) {
			d := dimensions[key]
			if d.BeginRange != "0" && d.BeginRange != "" {
				continue // a further tier
			}
			usd, err := strconv.ParseFloat(d.PricePerUnit[currency], 64)
			if err != nil || usd <= 0 {
				continue
			}
			switch strings.ToLower(d.Unit) {
			case "gb-mo":
				price.GiB = usd
			case "iops-mo":
				price.IOPS = usd
			case "gibps-mo":
				price.MiBps = usd / mibPerGiB
			case "mibps-mo":
				price.MiBps = usd
			}
		}
	}
	if price != (instancetypes.DiskPrice{}) {
		out[name] = price
	}
	return nil
}

type priceDimension struct {
	Unit, BeginRange string
	PricePerUnit     map[string]string
}
