package requestlimits

// Limit is a token bucket that AWS keeps for an account in a region, whatever else goes wrong.
type Limit struct {
	Service, Action string // the action may hold * and ?; the first limit that fits a call counts
	Each            string // a parameter of which each value takes a token; empty: each call takes one
	Burst           float64
	PerSecond       float64
	Source          string // where the numbers stand, or Assumed
}

// Sources of limits.
const (
	EC2Requests  = `"Request throttling for the Amazon EC2 API", request token bucket sizes`
	EC2Resources = `"Request throttling for the Amazon EC2 API", resource token bucket sizes`
	LambdaQuotas = `"Lambda quotas", Lambda API requests`
	SSMQuotas    = `"AWS Systems Manager endpoints and quotas", Parameter Store throughput`
	S3Requests   = `"Best practices design patterns: optimizing Amazon S3 performance", requests of a prefix`
	// Assumed stands where AWS publishes nothing. The numbers are lower than anybody has reported.
	Assumed = "assumed"
)

// Default are the buckets of an account that asked for no more. DescribeInstances, DescribeInstanceStatus and
// DescribeSecurityGroups have the smaller bucket in EC2 when they are neither filtered nor paged; here always. How many
// invocations Lambda runs at once the host of the functions bounds.
func Default() []Limit {
	return []Limit{
		{"ec2", "RunInstances", "", 5, 2, EC2Requests},
		{"ec2", "TerminateInstances", "InstanceId", 1000, 20, EC2Resources},
		{"ec2", "TerminateInstances", "", 100, 5, EC2Requests},
		{"ec2", "CreateTags", "", 100, 10, EC2Requests},
		{"ec2", "DescribeInstances", "", 50, 10, EC2Requests},
		{"ec2", "DescribeInstanceStatus", "", 50, 10, EC2Requests},
		{"ec2", "DescribeSecurityGroups", "", 50, 10, EC2Requests},
		{"ec2", "Describe*", "", 100, 20, EC2Requests},
		{"ec2", "Get*", "", 100, 20, EC2Requests},
		{"ec2", "*", "", 50, 5, EC2Requests}, // mutating actions, CreateFleet and CreateLaunchTemplate among them
		{"eks", "DescribeCluster", "", 10, 1, Assumed},
		{"eks", "*", "", 5, 1, Assumed},
		{"iam", "Get*", "", 20, 5, Assumed},
		{"iam", "List*", "", 20, 5, Assumed},
		{"iam", "*", "", 5, 1, Assumed},
		{"ssm", "GetParameter", "", 40, 40, SSMQuotas},
		{"ssm", "*", "", 3, 3, Assumed},
		{"lambda", "Invoke", "", 1000, 1000, Assumed}, // ten for each of a hundred environments, all functions together
		{"lambda", "*", "", 15, 15, LambdaQuotas},
		{"pricing", "*", "", 10, 5, Assumed},
		{"arc-zonal-shift", "*", "", 5, 1, Assumed},
		{"savingsplans", "*", "", 5, 1, Assumed},
		{"servicequotas", "*", "", 10, 2, Assumed},
		{"s3", "Get*", "", 5500, 5500, S3Requests},
		{"s3", "*", "", 3500, 3500, S3Requests},
	}
}
