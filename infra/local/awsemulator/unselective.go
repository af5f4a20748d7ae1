package awsemulator

import (
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// refuseUnselective refuses a Describe call of subnets, security groups or images that names neither ids nor filters.
// EC2 describes all that the caller may see then: of images every public one, and of an owner all of his. A selector
// that asks so has nodes run in subnets and from images that nobody chose.
func refuseUnselective(r *call) error {
	ids := map[string]string{"DescribeSubnets": "SubnetId.", "DescribeSecurityGroups": "GroupId.",
		"DescribeImages": "ImageId."}
	id, selects := ids[r.action]
	if r.service != "ec2" || !selects {
		return nil
	}
	for key := range r.form {
		if strings.HasPrefix(key, id) || strings.HasPrefix(key, "Filter.") && strings.Contains(key, ".Value.") {
			return nil
		}
	}
	return wire.Fail(400, "InvalidParameterCombination", "%s without ids and without filters selects everything",
		r.action)
}
