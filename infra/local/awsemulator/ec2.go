package awsemulator

import (
	"encoding/base64"
	"maps"
	"slices"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

func (c *account) ec2Operations() map[string]operation {
	return map[string]operation{
		"DescribeInstanceTypes":          look(c.market.describeInstanceTypes),
		"DescribeInstanceTypeOfferings":  look(c.market.describeInstanceTypeOfferings),
		"DescribeSpotPriceHistory":       look(c.market.describeSpotPriceHistory),
		"DescribeAvailabilityZones":      look(c.networks.describeAvailabilityZones),
		"DescribeSubnets":                look(c.networks.describeSubnets),
		"DescribeRouteTables":            look(c.networks.describeRouteTables),
		"DescribePrefixLists":            look(c.networks.describePrefixLists),
		"DescribeSecurityGroups":         look(c.networks.describeSecurityGroups),
		"DescribeVpcEndpoints":           look(c.networks.describeVpcEndpoints),
		"DescribeVpcEndpointServices":    look(c.networks.describeVpcEndpointServices),
		"DescribeImages":                 look(c.amis.describeImages),
		"DescribeLaunchTemplates":        look(c.templates.describeLaunchTemplates),
		"DescribeLaunchTemplateVersions": look(c.templates.describeLaunchTemplateVersions),
		"CreateLaunchTemplate":           op(c.templates.createLaunchTemplate),
		"DeleteLaunchTemplate":           op(c.templates.deleteLaunchTemplate),
		"CreateFleet":                    op(c.fleets.createFleet),
		"RunInstances":                   op(c.fleets.runInstances),
		"DescribeInstances":              look(c.instances.describeInstances),
		"DescribeInstanceStatus":         look(c.instances.describeInstanceStatus),
		"TerminateInstances":             op(c.instances.terminateInstances),
		"StopInstances":                  op(c.power.stopInstances),
		"StartInstances":                 op(c.power.startInstances),
		"ModifyInstanceAttribute":        op(c.power.modifyInstanceAttribute),
		"CreateTags":                     op(c.instances.createTags),
		"DescribeTags":                   look(c.instances.describeTags),
		"DescribeCapacityReservations":   look(c.capacity.describeCapacityReservations),
		"DescribeReservedInstances":      look(c.billing.describeReservedInstances),
		"DescribePlacementGroups":        look(c.capacity.describePlacementGroups),
		"GetEbsEncryptionByDefault":      look(c.volumes.getEbsEncryptionByDefault),
		"GetEbsDefaultKmsKeyId":          look(c.volumes.getEbsDefaultKmsKeyID),
	}
}

// filter is a condition of a Describe call: one of the values, with * and ?, fits one of the resource's.
type filter struct {
	Name  string
	Value []string
}

// page is what paged Describe calls have in common.
type page struct {
	MaxResults int
	NextToken  string
}

// xmlTag is a tag in replies and requests.
type xmlTag struct {
	Key   string `xml:"key"`
	Value string `xml:"value"`
}

func xmlTags(tags map[string]string) []xmlTag {
	var out []xmlTag
	for _, k := range slices.Sorted(maps.Keys(tags)) {
		out = append(out, xmlTag{k, tags[k]})
	}
	return out
}

// attribute returns the values that a resource has for a filter, and whether the resource knows the filter.
type attribute func(name string) (values []string, known bool)

// matchesFilters checks a resource against filters; an unknown filter is refused, as EC2 does.
func matchesFilters(filters []filter, of attribute) (bool, error) {
	ok := true
	for _, f := range filters {
		values, known := of(f.Name)
		if !known {
			return false, wire.Fail(400, "InvalidParameterValue", "The filter '%s' is invalid", f.Name)
		}
		ok = ok && slices.ContainsFunc(values, func(v string) bool {
			return slices.ContainsFunc(f.Value, func(pattern string) bool { return matchesGlob(pattern, v) })
		})
	}
	return ok, nil
}

// tagAttribute answers the filters tag:KEY, tag-key and tag-value.
func tagAttribute(tags map[string]string, name string) ([]string, bool) {
	if key, ok := strings.CutPrefix(name, "tag:"); ok {
		if v, has := tags[key]; has {
			return []string{v}, true
		}
		return nil, true
	}
	switch name {
	case "tag-key":
		return slices.Collect(maps.Keys(tags)), true
	case "tag-value":
		return slices.Collect(maps.Values(tags)), true
	}
	return nil, false
}

// knownFilters refuses an unknown filter even where there is no resource to try it on.
func knownFilters(filters []filter, of attribute) error {
	_, err := matchesFilters(filters, of)
	return err
}

// cutPage returns the page of items (already in the order of key) that comes after the token, and the next token.
func cutPage[T any](items []T, p page, most int, key func(T) string) ([]T, string, error) {
	if p.MaxResults < 0 || p.MaxResults > most {
		return nil, "", wire.Fail(400, "InvalidParameterValue",
			"Value ( %d ) for parameter maxResults is invalid. Expecting a value less than or equal to %d.",
			p.MaxResults, most)
	}
	if p.NextToken != "" {
		last, err := base64.RawURLEncoding.DecodeString(p.NextToken)
		if err != nil || !strings.HasPrefix(string(last), "after ") {
			return nil, "", wire.Fail(400, "InvalidNextToken", "The token '%s' is invalid", p.NextToken)
		}
		after := strings.TrimPrefix(string(last), "after ")
		start := slices.IndexFunc(items, func(i T) bool { return key(i) > after })
		if start < 0 {
			start = len(items)
		}
		items = items[start:]
	}
	size := p.MaxResults
	if size == 0 {
		size = most
	}
	if len(items) <= size {
		return items, "", nil
	}
	items = items[:size]
	return items, base64.RawURLEncoding.EncodeToString([]byte("after " + key(items[size-1]))), nil
}

// notFound is the failure for ids that do not exist.
func notFound(code, what, id string) *wire.Failure {
	return wire.Fail(400, code, "The %s '%s' does not exist", what, id)
}

type createTagsInput struct {
	ResourceID []string `query:"ResourceId"`
	Tag        []xmlTag
}

type done struct {
	Return bool `xml:"return"`
}

// createTags is all or nothing: one unknown id and no resource is tagged.
func (c *instances) createTags(r *call, in *createTagsInput) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	var targets []map[string]string
	for _, id := range in.ResourceID {
		tags, err := c.tagsOf(id)
		if err != nil {
			return nil, err
		}
		targets = append(targets, tags)
	}
	for _, t := range in.Tag {
		if strings.HasPrefix(t.Key, "aws:") {
			return nil, wire.Fail(400, "InvalidParameterValue",
				"Tag keys starting with 'aws:' are reserved for internal use")
		}
	}
	if err := r.endDryRun(); err != nil {
		return nil, err
	}
	for _, tags := range targets {
		for _, t := range in.Tag {
			tags[t.Key] = t.Value
		}
	}
	return done{true}, nil
}

// tagsOf finds the tags of a resource by its id. The account is locked.
func (c *instances) tagsOf(id string) (map[string]string, error) {
	switch {
	case strings.HasPrefix(id, "i-"):
		if m := c.machines[id]; m != nil {
			return m.Tags, nil
		}
		return nil, wire.Fail(400, "InvalidInstanceID.NotFound", "The instance ID '%s' does not exist", id)
	case strings.HasPrefix(id, "lt-"):
		if t := c.templates.lts[id]; t != nil {
			return t.tags, nil
		}
		return nil, notFound("InvalidLaunchTemplateId.NotFound", "launch template ID", id)
	case strings.HasPrefix(id, "subnet-"):
		if s := c.networks.vpc.findSubnet(id); s != nil {
			return s.Tags, nil
		}
		return nil, notFound("InvalidSubnetID.NotFound", "subnet ID", id)
	case strings.HasPrefix(id, "sg-"):
		if g := c.networks.vpc.findGroup(id); g != nil {
			return g.Tags, nil
		}
		return nil, notFound("InvalidGroup.NotFound", "security group", id)
	}
	return nil, wire.Fail(400, "InvalidID", "The ID '%s' is not valid", id)
}
