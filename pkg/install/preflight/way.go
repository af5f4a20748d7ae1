package preflight

import (
	"slices"
	"strconv"
	"strings"

	"joiner.sh/pkg/model/findings"
)

// Way tells whether a subnet of the functions gets to S3, through which CloudFormation is answered.
type Way struct {
	Subnet string
	Found  bool // a gateway endpoint for S3, or a default route that leads out without a public address
	Maybe  bool // a route that leads out to some addresses, or to a list of them
}

// LeadsToS3 reports whether a route takes functions to S3. They have no public address, so that an internet gateway
// leads nowhere.
func LeadsToS3(to, via, s3List string) bool {
	switch to {
	case "":
		return false
	case s3List:
		return strings.HasPrefix(via, "vpce-")
	}
	return to == "0.0.0.0/0" && leadsOut(via)
}

// MayLeadToS3 reports whether a route may take functions to S3: it leads out, to a part of the public addresses or to
// a prefix list of the user's.
func MayLeadToS3(to, via string) bool {
	if strings.HasPrefix(to, "pl-") {
		return leadsOut(via) && !strings.HasPrefix(via, "vpce-")
	}
	return strings.Contains(to, "/") && leadsOut(via) && !isPrivate(to)
}

// isPrivate reports whether a block of addresses is in one of those that RFC 1918 keeps for private networks.
func isPrivate(block string) bool {
	parts := strings.SplitN(block, ".", 3)
	if len(parts) < 3 {
		return false
	}
	second, err := strconv.Atoi(parts[1])
	return parts[0] == "10" || parts[0] == "192" && second == 168 ||
		parts[0] == "172" && err == nil && second >= 16 && second <= 31
}

// leadsOut reports whether functions get out of the VPC by what a route leads through.
func leadsOut(via string) bool {
	return via != "" && via != "local" && !strings.HasPrefix(via, "igw-")
}

// checkWays finds subnets without a way to S3. A function without one works and cannot say so: CloudFormation waits a
// quarter of an hour for its answer, and then for that of the rollback. An interface endpoint with private DNS, which
// its security group may close, and a route to some addresses may be one.
func (c *checker) checkWays() {
	endpoint := slices.ContainsFunc(c.facts.Endpoints, func(e Endpoint) bool {
		return e.Service == "s3" && !e.Gateway && e.PrivateDNS
	})
	var without, unsure []string
	for _, w := range c.facts.Ways {
		switch {
		case w.Found:
		case w.Maybe || endpoint:
			unsure = append(unsure, w.Subnet)
		default:
			without = append(without, w.Subnet)
		}
	}
	const mend = "add a gateway endpoint for S3, which is free, to the route tables of these subnets, or route them through a NAT gateway"
	if len(without) > 0 {
		c.Add(findings.Broken, TopicWays, "functions in "+strings.Join(without, " and ")+
			" cannot reach S3, where the catalog is and where CloudFormation expects answers", mend)
	}
	if len(unsure) > 0 {
		c.Add(findings.Warning, TopicWays, "whether functions in "+strings.Join(unsure, " and ")+
			" reach S3 depends on an interface endpoint and its security group, or on routes to a part of the addresses", mend)
	}
}
