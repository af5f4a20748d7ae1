package discovery

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/instancetypes"
)

// mibPerGiB turns the price list's GiBps-mo into MiB/s.
const mibPerGiB = 1024

// withDiskPrices is the catalog with what volumes cost now, or as it is where that cannot be read, which it notes.
func (r *CatalogRefresher) withDiskPrices(ctx context.Context, c instancetypes.Catalog,
	note func(what string, n int, err error) bool) instancetypes.Catalog {
	disks, err := r.readDiskPrices(ctx)
	if note("volume prices", len(disks), err) {
		c.DiskPrices = disks
	}
	return c
}

// readDiskPrices lists what EBS volumes cost in the region, by volume type, in USD per month (in China in CNY). Of a
// price in tiers it takes the first. It fails when no volume has a price, which no region's list says.
func (r *CatalogRefresher) readDiskPrices(ctx context.Context) (map[string]instancetypes.DiskPrice, error) {
	out := map[string]instancetypes.DiskPrice{}
	for _, family := range []string{"Storage", "System Operation", "Provisioned Throughput"} {
		err := r.listProducts(ctx, func(p product) error {
			addDiskPrice(out, p, priceListCurrency(r.region))
			return nil
		}, [][2]string{{"productFamily", family}})
		if err != nil {
			return nil, fmt.Errorf("get products (%s): %w", family, err)
		}
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("get products (Storage): the price list of %s has no volumes", r.region)
	}
	return out, nil
}

// addDiskPrice adds what an entry of the price list says of a type of volume, if it does, by its unit: GB-Mo, IOPS-Mo
// or GiBps-mo.
func addDiskPrice(out map[string]instancetypes.DiskPrice, p product, currency string) {
	name := p.Product.Attributes.VolumeAPIName
	if name == "" {
		return
	}
	price := out[name]
	for _, d := range p.priceDimensions() {
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
	if price != (instancetypes.DiskPrice{}) {
		out[name] = price
	}
}
