package awsemulator

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"joiner.sh/infra/local/awsemulator/wire"
)

// billing is what has been bought, and the price list.
type billing struct {
	*account
	reserved []ReservedInstances
	plans    []SavingsPlan
}

// ReservedInstances are some that the account bought.
type ReservedInstances struct {
	ID, Type string
	Count    int
	Zone     string // of zonal ones
	Platform string // default Linux/UNIX
	Tenancy  string // default default
	State    string // default active
}

// SavingsPlan is one that the account bought.
type SavingsPlan struct {
	ID         string
	Family     string             // of a plan for instances of one family, in Region
	Region     string             // that of the account when empty
	CommitUSD  float64            // per hour
	State      string             // default active
	OtherKind  string             // such as SageMaker, instead of one for EC2
	RatesUSD   map[string]float64 // per hour, by instance type
	WindowsUSD map[string]float64
}

// BuyReserved adds Reserved Instances to the account.
func (c *billing) BuyReserved(r ReservedInstances) {
	c.mu.Lock()
	defer c.mu.Unlock()
	set := func(s *string, fallback string) {
		if *s == "" {
			*s = fallback
		}
	}
	set(&r.Platform, "Linux/UNIX")
	set(&r.Tenancy, "default")
	set(&r.State, "active")
	c.reserved = append(c.reserved, r)
}

// BuyPlan adds a Savings Plan to the account.
func (c *billing) BuyPlan(p SavingsPlan) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.State == "" {
		p.State = "active"
	}
	if p.Region == "" {
		p.Region = c.opt.Region
	}
	c.plans = append(c.plans, p)
}

type describeReservedInput struct{ Filter []filter }

type xmlReserved struct {
	ID       string `xml:"reservedInstancesId"`
	Type     string `xml:"instanceType"`
	Zone     string `xml:"availabilityZone,omitempty"`
	Count    int    `xml:"instanceCount"`
	Platform string `xml:"productDescription"`
	State    string `xml:"state"`
	Tenancy  string `xml:"instanceTenancy"`
	Scope    string `xml:"scope"`
	Class    string `xml:"offeringClass"`
}

func (c *billing) describeReservedInstances(_ *call, in *describeReservedInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	attributes := func(x xmlReserved) attribute {
		return func(name string) ([]string, bool) {
			v, known := map[string]string{"state": x.State, "instance-type": x.Type, "scope": x.Scope,
				"availability-zone": x.Zone, "product-description": x.Platform}[name]
			return []string{v}, known
		}
	}
	if err := knownFilters(in.Filter, attributes(xmlReserved{})); err != nil {
		return nil, err
	}
	var out struct {
		Set []xmlReserved `xml:"reservedInstancesSet>item"`
	}
	for _, r := range c.reserved {
		x := xmlReserved{r.ID, r.Type, r.Zone, r.Count, r.Platform, r.State, r.Tenancy, "Region", "standard"}
		if r.Zone != "" {
			x.Scope = "Availability Zone"
		}
		ok, err := matchesFilters(in.Filter, attributes(x))
		if err != nil {
			return nil, err
		}
		if ok {
			out.Set = append(out.Set, x)
		}
	}
	return out, nil
}

func (c *account) plansOperations() map[string]operation {
	return map[string]operation{"DescribeSavingsPlans": op(c.billing.describeSavingsPlans),
		"DescribeSavingsPlanRates": op(c.billing.describeSavingsPlanRates)}
}

type plansInput struct {
	States, SavingsPlanArns, SavingsPlanIDs []string
	MaxResults                              int
	NextToken                               string
}

func (c *billing) describeSavingsPlans(_ *call, in *plansInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	all := []map[string]any{}
	for _, p := range c.plans {
		if !oneOf(in.States, p.State) || !oneOf(in.SavingsPlanIDs, p.ID) {
			continue
		}
		x := map[string]any{"savingsPlanId": p.ID, "savingsPlanArn": "arn:aws:savingsplans::" + c.opt.Account +
			":savingsplan/" + p.ID, "state": p.State,
			"savingsPlanType": "Compute", "productTypes": []string{"EC2", "Fargate", "Lambda"},
			"commitment": fmt.Sprintf("%.8f", p.CommitUSD), "currency": "USD",
			"start": "2026-01-01T00:00:00Z", "end": "2029-01-01T00:00:00Z",
			"termDurationInSeconds": int64(3 * 365 * 24 * time.Hour / time.Second)}
		if p.OtherKind != "" {
			x["savingsPlanType"], x["productTypes"] = p.OtherKind, []string{p.OtherKind}
		}
		if p.Family != "" {
			x["savingsPlanType"], x["productTypes"], x["ec2InstanceFamily"], x["region"] = "EC2Instance",
				[]string{"EC2"}, p.Family, p.Region
		}
		all = append(all, x)
	}
	return pageOf("savingsPlans", all, page{in.MaxResults, in.NextToken},
		func(x map[string]any) string { return x["savingsPlanId"].(string) })
}

type planRatesInput struct {
	SavingsPlanID string
	Filters       []struct {
		Name   string
		Values []string
	}
	MaxResults int
	NextToken  string
}

func (c *billing) describeSavingsPlanRates(_ *call, in *planRatesInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	i := slices.IndexFunc(c.plans, func(p SavingsPlan) bool { return p.ID == in.SavingsPlanID })
	if i < 0 {
		return nil, wire.Fail(404, "ResourceNotFoundException", "Savings Plan with ID %s not found", in.SavingsPlanID)
	}
	p := c.plans[i]
	all := []map[string]any{}
	add := func(product string, rates map[string]float64) error {
		for typ, usd := range rates { // sorted by pageOf
			family, _, _ := strings.Cut(typ, ".")
			has := map[string]string{"region": p.Region, "instanceType": typ, "instanceFamily": family,
				"productDescription": product, "tenancy": "shared"}
			wanted := true
			for _, f := range in.Filters {
				v, known := has[f.Name]
				if f.Name == "productType" {
					v, known = "EC2", true
				}
				if !known {
					return wire.Fail(400, "ValidationException", "The emulator does not model the filter %s", f.Name)
				}
				wanted = wanted && slices.Contains(f.Values, v)
			}
			if !wanted {
				continue
			}
			properties := []map[string]string{}
			for _, k := range []string{"region", "instanceType", "instanceFamily", "productDescription", "tenancy"} {
				properties = append(properties, map[string]string{"name": k, "value": has[k]})
			}
			all = append(all, map[string]any{"rate": fmt.Sprintf("%.10f", usd), "currency": "USD", "unit": "Hrs",
				"productType": "EC2", "serviceCode": "AmazonEC2",
				"usageType": "USW2-BoxUsage:" + typ, "operation": "RunInstances", "properties": properties})
		}
		return nil
	}
	for product, rates := range map[string]map[string]float64{"Linux/UNIX": p.RatesUSD, "Windows": p.WindowsUSD} {
		if err := add(product, rates); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(all, func(a, b map[string]any) int {
		return strings.Compare(a["usageType"].(string), b["usageType"].(string))
	})
	out, err := pageOf("searchResults", all, page{in.MaxResults, in.NextToken},
		func(x map[string]any) string { return x["usageType"].(string) })
	if err == nil {
		out["savingsPlanId"] = p.ID
	}
	return out, err
}

// pageOf is one page of a list under its name.
func pageOf(name string, all []map[string]any, p page, key func(map[string]any) string) (map[string]any, error) {
	slices.SortFunc(all, func(a, b map[string]any) int { return strings.Compare(key(a), key(b)) })
	list, next, err := cutPage(all, p, 1000, key)
	if err != nil {
		return nil, wire.Fail(400, "ValidationException", "Invalid nextToken or maxResults")
	}
	out := map[string]any{name: list}
	if next != "" {
		out["nextToken"] = next
	}
	return out, nil
}
