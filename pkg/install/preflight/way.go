package preflight

import "strings"

// Way is how a subnet of the functions gets to S3, through which CloudFormation is answered.
type Way struct {
	Subnet string
	Found  bool // a gateway endpoint for S3, or a default route that leads out without a public address
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
	return to == "0.0.0.0/0" && via != "" && !strings.HasPrefix(via, "igw-")
}

// checkWays finds subnets without a way to S3. A function without one works and cannot say so: CloudFormation waits a
// quarter of an hour for its answer, and then for that of the rollback.
func (c *checker) checkWays() {
	var without []string
	for _, w := range c.facts.Ways {
		if !w.Found {
			without = append(without, w.Subnet)
		}
	}
	if len(without) == 0 {
		return
	}
	c.addFinding(Broken, TopicWays, "functions in "+strings.Join(without, " and ")+
		" cannot reach S3, where the catalog is and where CloudFormation expects answers",
		"add a gateway endpoint for S3, which is free, to the route tables of these subnets, or route them through a NAT gateway")
}
