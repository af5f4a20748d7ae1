package awsemulator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// market is what EC2 sells: types, zones and spot prices.
type market struct{ *account }

type describeOfferingsInput struct {
	page
	Filter       []filter
	LocationType string
}

type xmlOffering struct {
	Type         string `xml:"instanceType"`
	LocationType string `xml:"locationType"`
	Location     string `xml:"location"`
}

// offeringLocations of a type for a location type; false if EC2 does not know that.
func (c *market) offeringLocations(t *InstanceType, locationType string) ([]string, bool) {
	switch locationType {
	case "availability-zone":
		return t.Zones, true
	case "availability-zone-id":
		var ids []string
		for _, z := range t.Zones {
			ids = append(ids, c.offerings.zoneIDs[z])
		}
		return ids, true
	case "region", "":
		return []string{c.opt.Region}, true
	}
	return nil, false
}

func (c *market) describeInstanceTypeOfferings(_ *call, in *describeOfferingsInput) (any, error) {
	var found []xmlOffering
	for i := range c.offerings.types {
		t := &c.offerings.types[i]
		locations, known := c.offeringLocations(t, in.LocationType)
		if !known {
			return nil, wire.Fail(400, "InvalidParameterValue", "Invalid value '%s' for locationType", in.LocationType)
		}
		for _, l := range locations {
			ok, err := matchesFilters(in.Filter, func(name string) ([]string, bool) {
				v, known := map[string]string{"instance-type": t.Name, "location": l}[name]
				return []string{v}, known
			})
			if err != nil {
				return nil, err
			}
			if ok {
				found = append(found, xmlOffering{t.Name, in.LocationType, l})
			}
		}
	}
	slices.SortFunc(found, func(a, b xmlOffering) int { return strings.Compare(offeringKey(a), offeringKey(b)) })
	var out struct {
		Offerings []xmlOffering `xml:"instanceTypeOfferingSet>item"`
		Next      string        `xml:"nextToken,omitempty"`
	}
	var err error
	out.Offerings, out.Next, err = cutPage(found, in.page, 1000, offeringKey)
	return out, err
}

func offeringKey(o xmlOffering) string { return o.Type + " " + o.Location }

type describeSpotInput struct {
	page
	Filter             []filter
	InstanceType       []string
	ProductDescription []string
	AvailabilityZone   string
	StartTime, EndTime time.Time
}

type xmlSpotPrice struct {
	Type    string    `xml:"instanceType"`
	Product string    `xml:"productDescription"`
	Price   string    `xml:"spotPrice"`
	At      wire.Time `xml:"timestamp"`
	Zone    string    `xml:"availabilityZone"`
	ZoneID  string    `xml:"availabilityZoneId"`
}

// describeSpotPriceHistory knows one price for each type, zone and product: the one in force. It has been in
// force since before any StartTime a client asks for, and EC2 tells that one whatever the StartTime is.
func (c *market) describeSpotPriceHistory(_ *call, in *describeSpotInput) (any, error) {
	since := time.Now().UTC().Truncate(24 * time.Hour)
	var found []xmlSpotPrice
	for i := range c.offerings.types {
		t := &c.offerings.types[i]
		for _, z := range t.Zones {
			usd, sold := c.offerings.hourlyPrice(spot, t.Name, z)
			if !sold || !oneOf(in.InstanceType, t.Name) || in.AvailabilityZone != "" && in.AvailabilityZone != z {
				continue
			}
			for _, product := range []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"} {
				p := xmlSpotPrice{t.Name, product, fmt.Sprintf("%.6f", usd), wire.Time{Time: since}, z,
					c.offerings.zoneIDs[z]}
				ok, err := matchesFilters(in.Filter, p.filterAttribute)
				if err != nil {
					return nil, err
				}
				if ok && oneOf(in.ProductDescription, product) {
					found = append(found, p)
				}
			}
		}
	}
	slices.SortFunc(found, func(a, b xmlSpotPrice) int { return strings.Compare(spotKey(a), spotKey(b)) })
	var out struct {
		Prices []xmlSpotPrice `xml:"spotPriceHistorySet>item"`
		Next   string         `xml:"nextToken"` // empty at the end, as EC2 has it
	}
	if in.MaxResults > 1000 {
		in.MaxResults = 1000 // EC2 takes larger wishes and gives no more
	}
	var err error
	out.Prices, out.Next, err = cutPage(found, in.page, 1000, spotKey)
	return out, err
}

func spotKey(p xmlSpotPrice) string { return p.Type + " " + p.Zone + " " + p.Product }

func (p xmlSpotPrice) filterAttribute(name string) ([]string, bool) {
	v, known := map[string]string{
		"instance-type": p.Type, "availability-zone": p.Zone, "product-description": p.Product, "spot-price": p.Price,
	}[name]
	return []string{v}, known
}
