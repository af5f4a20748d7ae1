package preflight

import (
	"fmt"
	"strings"

	"joiner.sh/pkg/model/findings"
)

// TopicServices is the topic of a finding about services out of reach.
const TopicServices = "way to AWS"

// Silence is a service of AWS that did not answer a function in the subnets of the settings.
type Silence struct {
	Service   string // its short name, such as ec2
	Host      string
	Addresses []string // of the host; none where its name is not known
	Private   bool     // all of them are of private networks
}

// The settings by which functions get a way to a service.
const (
	wayOut    = "route the subnets of subnetIDs through a NAT gateway, and have the functions' security groups let TCP 443 out"
	isolation = "set isolatedVPC, with which nobody calls it"
)

// JudgeSilence says of each service out of reach what is missing: the VPC's DNS, what an endpoint's security group
// admits, an endpoint, or a route. Without IAM and the price list functions do most of their work.
func JudgeSilence(all []Silence) findings.List {
	var out findings.List
	for _, s := range all {
		level, what := findings.Broken, fmt.Sprintf("functions do not reach %s at %s", s.Service, s.Host)
		var mend string
		switch s.Service {
		case "iam", "pricing":
			level, mend = findings.Warning, isolation+", or "+wayOut
		case "s3":
			mend = "add a gateway endpoint for S3, which is free, to the route tables of the subnets, or " + wayOut
		default:
			mend = "add " + s.Service + " to vpcEndpoints, or " + wayOut
		}
		switch {
		case len(s.Addresses) == 0:
			what, mend = what+", a name that the VPC's DNS does not know",
				"aws ec2 modify-vpc-attribute --vpc-id VPC --enable-dns-support"
		case s.Private:
			what += ", which is an interface endpoint at " + strings.Join(s.Addresses, ", ")
			mend = "have the security group of that endpoint admit TCP 443 from the functions' groups or the VPC, and their groups let it out"
		default:
			what += ", for which the VPC has no endpoint that answers, and their subnets no route"
		}
		out.Add(level, TopicServices, what, mend)
	}
	return out
}
