package preflight

import (
	"slices"
	"strings"

	"joiner.sh/pkg/model/findings"
)

// HasFunctionURLs reports whether Lambda has function URLs in the region. Its guide, "Creating and managing Lambda
// function URLs", names those of the partition aws that have none. Of other partitions none is known to have them;
// names of their regions have four parts, but in China.
func HasFunctionURLs(region string) bool {
	return strings.Count(region, "-") == 2 && !strings.HasPrefix(region, "cn-") &&
		!slices.Contains([]string{"ap-east-2", "ap-south-2", "ap-southeast-4", "ap-southeast-5", "ap-southeast-6",
			"ap-southeast-7", "ca-west-1", "eu-central-2", "eu-south-2", "il-central-1", "me-central-1"}, region)
}

// checkPush finds a region in which the cluster could call nobody.
func (c *checker) checkPush() {
	if c.plan.Push && !HasFunctionURLs(c.plan.Region) {
		c.Add(findings.Broken, TopicPush, "trigger is push, which needs a function URL, and Lambda has none in "+c.plan.Region,
			`write "trigger": "watch" or "trigger": "schedule" into the context of cdk.json`)
	}
}

// checkZonalShift finds functions that do not reach ARC: the stack makes no endpoint for it.
func (c *checker) checkZonalShift() {
	if c.plan.ZonalShift && len(c.plan.Endpoints) > 0 {
		c.Add(findings.Warning, TopicEndpoints, "zonalShift asks ARC about shifts, and vpcEndpoints makes no endpoint for arc-zonal-shift: without a NAT gateway no shift is seen",
			"make an interface endpoint for arc-zonal-shift where ARC has one, or route the subnets through a NAT gateway")
	}
}

// hasOtherEndpointNames reports whether the endpoints of some services have other names in the region than
// com.amazonaws.REGION.SERVICE: in China and in the isolated partitions.
func hasOtherEndpointNames(region string) bool {
	return strings.HasPrefix(region, "cn-") || strings.Contains(region, "-iso")
}
