package awsemulator

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

func (c *account) pricingOperations() map[string]operation {
	return map[string]operation{"GetProducts": op(c.billing.getProducts)}
}

type productFilter struct{ Type, Field, Value string }

type getProductsInput struct {
	ServiceCode   string
	Filters       []productFilter
	FormatVersion string
	MaxResults    int
	NextToken     string
}

// getProducts knows Linux on shared tenancy, and on dedicated tenancy for bare metal, where AWS lists it.
func (c *billing) getProducts(_ *call, in *getProductsInput) (any, error) {
	if in.ServiceCode != "AmazonEC2" {
		return nil, wire.Fail(400, "NotFoundException", "The emulator knows no service %s", in.ServiceCode)
	}
	if items := diskPriceItems(in.Filters); items != nil {
		return encodePriceList(items, "")
	}
	var found []*InstanceType
	for i := range c.offerings.types {
		t := &c.offerings.types[i]
		ok, err := productFits(c.productAttributes(t), in.Filters)
		if err != nil {
			return nil, err
		}
		if ok {
			found = append(found, t)
		}
	}
	found, next, err := cutPage(found, page{in.MaxResults, in.NextToken}, 100,
		func(t *InstanceType) string { return t.Name })
	if err != nil {
		return nil, wire.Fail(400, "InvalidNextTokenException", "Invalid NextToken or MaxResults")
	}
	var items []map[string]any
	for _, t := range found {
		items = append(items, c.priceItem(t))
	}
	return encodePriceList(items, next)
}

// encodePriceList is a page of the price list: each entry is text that holds JSON.
func encodePriceList(items []map[string]any, next string) (any, error) {
	list := []string{}
	for _, item := range items {
		text, err := json.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("encode price: %w", err)
		}
		list = append(list, string(text))
	}
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": list}
	if next != "" {
		out["NextToken"] = next
	}
	return out, nil
}

// diskProduct is an entry of the price list of EBS.
type diskProduct struct {
	family, volume, unit, usd string
}

// diskProducts are what EBS charges for, as the price list of us-west-2 has it.
func diskProducts() []diskProduct {
	return []diskProduct{
		{"Storage", "gp3", "GB-Mo", "0.0800000000"}, {"Storage", "gp2", "GB-Mo", "0.1000000000"},
		{"Storage", "io1", "GB-Mo", "0.1250000000"}, {"Storage", "io2", "GB-Mo", "0.1250000000"},
		{"Storage", "st1", "GB-Mo", "0.0450000000"}, {"Storage", "sc1", "GB-Mo", "0.0150000000"},
		{"Storage", "standard", "GB-Mo", "0.0500000000"},
		{"System Operation", "gp3", "IOPS-Mo", "0.0050000000"},
		{"System Operation", "io1", "IOPS-Mo", "0.0650000000"}, {"System Operation", "io2", "IOPS-Mo", "0.0650000000"},
		{"Provisioned Throughput", "gp3", "GiBps-mo", "40.9600000000"},
	}
}

// diskPriceItems are the entries of the product family that the filters name, nil when it is none of EBS.
func diskPriceItems(filters []productFilter) []map[string]any {
	var out []map[string]any
	for _, f := range filters {
		for _, d := range diskProducts() {
			if f.Field != "productFamily" || f.Value != d.family {
				continue
			}
			sku := strings.ToUpper(hash16(d.family + d.volume))
			term := sku + ".JRTCKXETXF"
			out = append(out, map[string]any{
				"product": map[string]any{"productFamily": d.family, "sku": sku,
					"attributes": map[string]string{"volumeApiName": d.volume, "servicecode": "AmazonEC2"}},
				"serviceCode": "AmazonEC2",
				"terms": map[string]any{"OnDemand": map[string]any{term: map[string]any{
					"sku": sku, "priceDimensions": map[string]any{term + ".6YS6EN2CT7": map[string]any{
						"unit": d.unit, "beginRange": "0", "endRange": "Inf",
						"pricePerUnit": map[string]string{"USD": d.usd}}}}}},
			})
		}
	}
	return out
}

func productFits(attributes map[string]string, filters []productFilter) (bool, error) {
	ok := true
	for _, f := range filters {
		if f.Type != "TERM_MATCH" && f.Type != "EQUALS" {
			return false, wire.Fail(400, "InvalidParameterException", "The emulator does not model filters of type %s",
				f.Type)
		}
		value, known := attributes[f.Field]
		if !known {
			return false, wire.Fail(400, "InvalidParameterException", "Input Parameters are invalid: unknown field %s",
				f.Field)
		}
		ok = ok && strings.EqualFold(value, f.Value)
	}
	return ok, nil
}

// productAttributes is everything that a filter may ask for.
func (c *billing) productAttributes(t *InstanceType) map[string]string {
	family, tenancy := "Compute Instance", "Shared"
	if t.BareMetal {
		family, tenancy = "Compute Instance (bare metal)", "Dedicated"
	}
	generation := "No"
	if t.CurrentGeneration {
		generation = "Yes"
	}
	return map[string]string{
		"productFamily": family, "tenancy": tenancy, "instanceType": t.Name, "regionCode": c.opt.Region,
		"location": "US West (Oregon)", "locationType": "AWS Region", "operatingSystem": "Linux",
		"preInstalledSw": "NA", "capacitystatus": "Used", "marketoption": "OnDemand",
		"licenseModel": "No License required",
		"servicecode":  "AmazonEC2", "serviceCode": "AmazonEC2", "servicename": "Amazon Elastic Compute Cloud",
		"operation": "RunInstances", "usagetype": "USW2-BoxUsage:" + t.Name, "currentGeneration": generation,
		"vcpu": fmt.Sprint(t.VCPU), "memory": fmt.Sprintf("%g GiB", float64(t.MemoryMiB)/1024),
		"physicalProcessor": t.CPUManufacturer,
	}
}

// priceItem is an entry of the price list as AWS writes it: a product and its on-demand terms.
func (c *billing) priceItem(t *InstanceType) map[string]any {
	attributes := c.productAttributes(t)
	family := attributes["productFamily"]
	delete(attributes, "productFamily")
	delete(attributes, "serviceCode")
	const onDemandTerm, hourly = "JRTCKXETXF", "6YS6EN2CT7"
	sku := strings.ToUpper(hash16(t.Name))
	dimension := map[string]any{
		"unit": "Hrs", "beginRange": "0", "endRange": "Inf", "appliesTo": []string{},
		"rateCode":     strings.Join([]string{sku, onDemandTerm, hourly}, "."),
		"description":  fmt.Sprintf("$%g per On Demand Linux %s Instance Hour", t.OnDemandUSD, t.Name),
		"pricePerUnit": map[string]string{"USD": fmt.Sprintf("%.10f", t.OnDemandUSD)},
	}
	const published = "2026-11-01T00:00:00Z"
	term := map[string]any{
		"sku": sku, "offeringTermCode": onDemandTerm, "effectiveDate": published, "termAttributes": map[string]string{},
		"priceDimensions": map[string]any{sku + "." + onDemandTerm + "." + hourly: dimension},
	}
	return map[string]any{
		"product":         map[string]any{"productFamily": family, "attributes": attributes, "sku": sku},
		"serviceCode":     "AmazonEC2",
		"terms":           map[string]any{"OnDemand": map[string]any{sku + "." + onDemandTerm: term}},
		"version":         time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Format("20060102150405"),
		"publicationDate": published,
	}
}
