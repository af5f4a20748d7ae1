package stack

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/settings"
)

// statement is one IAM permission. Statements with the same sid in several functions are the same statement.
type statement struct {
	sid       string
	actions   []string
	resources []string
	when      conditions
	changes   bool // EC2 or IAM, so that it is left out in mode observe
	denies    bool // instead of allowing
}

// permissions writes the IAM statements of the stack's functions.
type permissions struct {
	scope
	bucket    awss3.Bucket
	key       awskms.IKey // nil: keys of AWS
	nodeRoles []string    // ARNs
	inVPC     bool
}

// permissions returns the permissions of the stack as it is built so far.
func (s *joiner) permissions() permissions {
	return permissions{scope: s.scope, bucket: s.bucket, key: s.key, nodeRoles: s.nodeRoles, inVPC: s.net.vpc != nil}
}

// commonAllows returns what every function needs; one that is called only a log. Lambda itself uses all but the last in
// the name of the role.
func (p permissions) commonAllows(f madeFunction, logGroup string) []statement {
	out := []statement{
		{sid: "WriteOwnLog", actions: []string{"logs:CreateLogStream", "logs:PutLogEvents"},
			resources: []string{logGroup}},
	}
	switch {
	case f.queue != nil: // SQS itself moves what is given up
		out = append(out, statement{sid: "ReceiveOwnEvents",
			actions:   []string{"sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"},
			resources: []string{*f.queue.QueueArn()}})
	case f.deadLetters != nil:
		out = append(out, statement{sid: "SendToOwnDeadLetters", actions: []string{"sqs:SendMessage"},
			resources: []string{*f.deadLetters.QueueArn()}})
	}
	if p.key != nil {
		out = append(out, p.useKey(f.function))
		if f.queue != nil {
			out = append(out, p.readOlderMessages())
		}
	}
	if f.called {
		return out
	}
	if p.props.Stack.Tracing {
		// X-Ray knows no resources.
		out = append(out, statement{sid: "SendTraces",
			actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, resources: []string{"*"}})
	}
	if !f.outside {
		out = append(out, p.useNetwork(f.function)...)
	}
	if f.inCluster() && !f.asksEKS {
		out = append(out, statement{sid: "ReadAuthority", actions: []string{"s3:GetObject"},
			resources: []string{*p.bucket.BucketArn() + "/" + AuthorityKey}})
	}
	return out
}

// useKey is for the user's key, through the services that use it for the function: its environment and, but for one
// that is called by anybody, bucket and queues.
func (p permissions) useKey(f function) statement {
	services := []string{"lambda", "s3", "sqs"}
	if f.called {
		services = services[:1]
	}
	for i, name := range services {
		services[i] = name + "." + *p.Region() + "." + *p.UrlSuffix()
	}
	return statement{sid: "UseKey", actions: []string{"kms:Decrypt", "kms:GenerateDataKey"},
		resources: []string{*p.key.KeyArn()}, when: conditions{"StringEquals": {"kms:ViaService": services}}}
}

// readOlderMessages is for what came into the function's queue under another key, which kmsKey named before: messages
// stay as they were encrypted. Nothing but what SQS hands to the function can be decrypted so.
func (p permissions) readOlderMessages() statement {
	return statement{sid: "ReadOlderMessages", actions: []string{"kms:Decrypt"},
		resources: []string{p.arn("kms", *p.Region(), *p.Account(), "key/*")},
		when:      conditions{"StringEquals": {"kms:ViaService": {"sqs." + *p.Region() + "." + *p.UrlSuffix()}}}}
}

// useNetwork returns what Lambda needs to put a function into a VPC, with the role of the function. The function's own
// code, which has that role too, may do none of it: Lambda says in a condition key whose code a call comes from.
// Outside of a VPC it is there for versions of before: Lambda could not give back their network interfaces when a stack
// leaves its VPC.
func (p permissions) useNetwork(f function) []statement {
	changes := []string{"ec2:CreateNetworkInterface", "ec2:DeleteNetworkInterface", "ec2:AssignPrivateIpAddresses",
		"ec2:UnassignPrivateIpAddresses"}
	own := p.arn("lambda", *p.Region(), *p.Account(), "function:"+p.functionName(f.name))
	return []statement{
		{sid: "UseNetwork", resources: []string{"*"},
			actions: append(slices.Clone(changes), "ec2:DescribeNetworkInterfaces", "ec2:DescribeSubnets")},
		{sid: "LeaveNetworkToLambda", resources: []string{"*"}, actions: changes, denies: true,
			when: conditions{"ArnEquals": {"lambda:SourceFunctionArn": {own, own + ":*"}}}},
	}
}

// findCluster is for setup, and for refresh where the cluster's certificate authority changed. EKS throttles whoever
// asks it often, so that nobody else does.
func (p permissions) findCluster() statement {
	return statement{sid: "FindCluster", actions: []string{"eks:DescribeCluster"},
		resources: []string{p.arn("eks", *p.Region(), *p.Account(), "cluster/"+p.cluster)}}
}

func provisionAllows(p permissions) []statement {
	return append(append(append(append(p.allowLaunch(), p.storePasses()...), p.readShifts()...),
		p.readCheckpoint(),
		p.describe("DescribeLaunched", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances"),
		p.describeLevels(),
		statement{sid: "StartOwnInstances", actions: []string{"ec2:StartInstances"},
			resources: []string{p.ec2("instance/*")}, when: p.ownedTags(), changes: true},
		p.passNodeRole(),
		p.readCatalog(),
		p.allowWake("lifecycle", "refresh"),
	), p.givenStatements()...)
}

// givenStatements are the user's own, such as for the KMS key of volumes.
func (p permissions) givenStatements() []statement {
	var out []statement
	for i, g := range p.props.Stack.ProvisionStatements {
		out = append(out, statement{sid: cmp.Or(g.SID, fmt.Sprintf("Given%d", i+1)), actions: g.Actions,
			resources: g.Resources, when: g.Conditions, changes: true})
	}
	return out
}

func lifecycleAllows(p permissions) []statement {
	return append(append(p.remoteWrite(), p.readShifts()...),
		p.readCheckpoint(),
		statement{sid: "WriteCheckpoint", actions: []string{"s3:PutObject"},
			resources: []string{*p.bucket.BucketArn() + "/" + CheckpointKey}},
		p.describe("DescribeLaunched", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances"),
		p.describe("DescribeHealth", "ec2:DescribeInstanceStatus"),
		statement{sid: "TagOwnInstances", actions: []string{"ec2:CreateTags"}, resources: []string{p.ec2("instance/*")},
			changes: true,
			when: p.ownedTags().withTest("StringEqualsIfExists", "aws:RequestTag/"+tagClusterName, p.cluster).
				withTest("ForAllValues:StringEquals", "aws:TagKeys", tagClusterName, tagNodeClaim, "Name")},
		statement{sid: "TerminateOwnInstances", actions: []string{"ec2:TerminateInstances"},
			resources: []string{p.ec2("instance/*")}, when: p.ownedTags(), changes: true},
		statement{sid: "StopOwnInstances", actions: []string{"ec2:StopInstances"},
			resources: []string{p.ec2("instance/*")}, when: p.ownedTags(), changes: true},
		p.deleteTemplates(),
		p.allowWake("provision", "refresh"))
}

// remoteWrite is for metrics that are sent to Prometheus, and what is remembered of them.
func (p permissions) remoteWrite() []statement {
	set := p.props.Functions.RemoteWrite
	if set.URL == "" {
		return nil
	}
	catalog := p.readCatalog()
	catalog.resources = append(catalog.resources, *p.bucket.BucketArn()+"/"+MetricsKey)
	out := []statement{catalog, {sid: "StoreMetrics", actions: []string{"s3:PutObject"},
		resources: []string{*p.bucket.BucketArn() + "/" + MetricsKey}}}
	workspace, region := set.WorkspaceID()
	switch {
	case set.Secret != "":
		out = append(out, statement{sid: "ReadSecret", actions: []string{"secretsmanager:GetSecretValue"},
			resources: []string{set.Secret}})
	case set.Signed() && workspace != "":
		out = append(out, statement{sid: "SendMetrics", actions: []string{"aps:RemoteWrite"},
			resources: []string{p.arn("aps", region, *p.Account(), "workspace/"+workspace)}})
	}
	return out
}

// Disrupt writes its intents into the cluster; provision launches and lifecycle drains.
func disruptAllows(p permissions) []statement {
	return append(append(p.storePasses(), p.readShifts()...),
		p.readCheckpoint(),
		p.describe("DescribeInstances", "ec2:DescribeInstances"), // whether they are where their class would put them
		p.describe("ReadAlarms", "cloudwatch:DescribeAlarms"),    // those that NodeRollouts name
		p.describe("FindImages", "ec2:DescribeImages"),           // of their last good revision
		p.readCatalog(), p.describeLevels(), p.allowWake("provision", "lifecycle"))
}

// storePasses is for passes that are kept whole: those in which something failed, or all of them for the decision log.
func (p permissions) storePasses() []statement {
	return []statement{{sid: "StorePasses", actions: []string{"s3:PutObject"},
		resources: []string{*p.bucket.BucketArn() + "/" + decisionlog.Prefix + "*"}}}
}

// readShifts is for zones that the cluster is shifted away from. IAM knows no cluster as a resource of ARC, only as the
// value of a condition key.
func (p permissions) readShifts() []statement {
	if !p.props.Functions.ZonalShift {
		return nil
	}
	return []statement{{sid: "ReadZonalShifts", actions: []string{"arc-zonal-shift:GetManagedResource"},
		resources: []string{"*"}, when: conditions{"StringEquals": {"arc-zonal-shift:ResourceIdentifier": {
			p.arn("eks", *p.Region(), *p.Account(), "cluster/"+p.cluster)}}}}}
}

// describeLevels returns what decisions about capacity need to know that changes with every launch.
func (p permissions) describeLevels() statement {
	return p.describe("DescribeLevels", "ec2:DescribeCapacityReservations", "ec2:DescribeSubnets",
		"ec2:DescribePlacementGroups")
}

func refreshAllows(p permissions) []statement {
	var rehearse []statement // EC2 answers a dry run only to who may do the deed
	if p.props.Functions.DryRunValidation {
		rehearse = p.allowLaunch()
	}
	var commitments []statement // those of EC2 and of Savings Plans know no resources
	if p.props.Functions.Commitments > 0 {
		commitments = []statement{
			p.describe("DescribeReservedAndRunning", "ec2:DescribeReservedInstances", "ec2:DescribeInstances"),
			{sid: "DescribeSavingsPlans", actions: []string{"savingsplans:DescribeSavingsPlans",
				"savingsplans:DescribeSavingsPlanRates"}, resources: []string{"*"}},
		}
	}
	return append(append(append([]statement{
		p.findCluster(),
		p.describe("DescribeNetworkAndImages", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups",
			"ec2:DescribeImages",
			"ec2:DescribeCapacityReservations", "ec2:DescribePlacementGroups"),
		p.describe("DescribeOfferings", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeSpotPriceHistory"),
		{sid: "ReadImageParameters", actions: []string{"ssm:GetParameter"},
			resources: append([]string{p.arn("ssm", *p.Region(), "", "parameter/aws/service/*")},
				p.imageParameters()...)},
		// The price list lives in other regions, so no region can be asked for.
		{sid: "ReadPrices", actions: []string{"pricing:GetProducts"}, resources: []string{"*"}},
		p.describe("DescribeTemplates", "ec2:DescribeLaunchTemplates"),
		p.deleteTemplates(),
		p.passNodeRole(),
		p.readCatalog(),
		{sid: "WriteCatalog", actions: []string{"s3:PutObject"},
			resources: []string{*p.bucket.BucketArn() + "/" + CatalogKey, *p.bucket.BucketArn() + "/" + AuthorityKey}},
	}, p.instanceProfiles()...), commitments...), rehearse...)
}

// imageParameters returns the parameters that hold images of the user's own.
func (p permissions) imageParameters() []string {
	var out []string
	for _, name := range p.props.Stack.ImageParameters {
		out = append(out, p.arn("ssm", *p.Region(), *p.Account(), "parameter/"+strings.TrimPrefix(name, "/")))
	}
	return out
}

// Notices about instances are handled in the cluster; EC2 is told by lifecycle and provision.
func wakesBoth(p permissions) []statement {
	return []statement{p.allowWake("provision", "lifecycle")}
}

// No claim is deleted on a recommendation until there is a replacement, so that there is nothing for lifecycle.
func wakesProvision(p permissions) []statement {
	return []statement{p.allowWake("provision")}
}

// Setup works in the cluster. To drain it, it has lifecycle do its work. In an account without the role of spot it
// makes that.
func setupAllows(p permissions) []statement {
	const spot = "spot.amazonaws.com"
	return append([]statement{
		p.findCluster(),
		{sid: "CreateSpotRole", changes: true, actions: []string{"iam:CreateServiceLinkedRole"},
			resources: []string{p.arn("iam", "", *p.Account(), "role/aws-service-role/"+spot+"/*")},
			when:      conditions{"StringEquals": {"iam:AWSServiceName": {spot}}}},
		{sid: "WakeFunctions", actions: []string{"lambda:InvokeFunction"}, // whose alias goes first
			resources: []string{p.arn("lambda", *p.Region(), *p.Account(), "function:"+p.functionName("lifecycle"))}},
	}, p.removeLeftovers()...)
}

// removeLeftovers is for a stack that takes its nodes with it: setup deletes the instance profiles that refresh made,
// or IAM would not let go of the node role, and the launch templates.
func (p permissions) removeLeftovers() []statement {
	if p.props.Stack.OnDelete != settings.OnDeleteDrain {
		return nil
	}
	return []statement{
		p.listProfiles(),
		{sid: "RemoveInstanceProfile", changes: true, resources: p.profileARNs(), when: p.taggedProfile("Resource"),
			actions: []string{"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}},
		p.describe("DescribeTemplates", "ec2:DescribeLaunchTemplates"),
		p.deleteTemplates(),
	}
}

// allowLaunch lists what a launch may use, and that all it makes is tagged as ours.
func (p permissions) allowLaunch() []statement {
	run := []string{"ec2:RunInstances", "ec2:CreateFleet"}
	made := []string{
		p.ec2("fleet/*"), p.ec2("instance/*"), p.ec2("volume/*"),
		p.ec2("network-interface/*"), p.ec2("launch-template/*"), p.ec2("spot-instances-request/*"),
	}
	return []statement{
		{sid: "LaunchFrom", changes: true, actions: run, resources: []string{
			p.arn("ec2", *p.Region(), "", "image/*"), p.arn("ec2", *p.Region(), "", "snapshot/*"),
			p.anyAccount("security-group/*"), p.anyAccount("subnet/*"),
			p.anyAccount("capacity-reservation/*"), p.anyAccount("placement-group/*"),
		}},
		{sid: "LaunchFromOwnTemplate", changes: true, actions: run, resources: []string{p.ec2("launch-template/*")},
			when: p.ownedTags()},
		{sid: "LaunchTagged", changes: true, actions: append(run, "ec2:CreateLaunchTemplate"), resources: made,
			when: p.requestedAsOwned()},
		{sid: "TagWhatIsLaunched", changes: true, actions: []string{"ec2:CreateTags"}, resources: made,
			when: p.requestedAsOwned().withTest("StringEquals", "ec2:CreateAction", "RunInstances", "CreateFleet",
				"CreateLaunchTemplate")},
	}
}

func (p permissions) passNodeRole() statement {
	return statement{sid: "PassNodeRole", changes: true, actions: []string{"iam:PassRole"}, resources: p.nodeRoles,
		when: conditions{"StringEquals": {"iam:PassedToService": {"ec2.amazonaws.com", "ec2." + *p.UrlSuffix()}}}}
}

// describe allows reads that IAM cannot narrow to a resource; the region is the only limit there is.
func (p permissions) describe(sid string, actions ...string) statement {
	return statement{sid: sid, actions: actions, resources: []string{"*"},
		when: conditions{"StringEquals": {"aws:RequestedRegion": {*p.Region()}}}}
}

// readCatalog includes listing, without which S3 says "access denied" instead of "no such key" before the first
// refresh.
func (p permissions) readCatalog() statement {
	return statement{sid: "ReadCatalog", actions: []string{"s3:GetObject", "s3:ListBucket"},
		resources: []string{*p.bucket.BucketArn(), *p.bucket.BucketArn() + "/" + CatalogKey}}
}

func (p permissions) allowWake(functions ...string) statement {
	st := statement{sid: "WakeFunctions", actions: []string{"lambda:InvokeFunction"}}
	for _, f := range functions {
		st.resources = append(st.resources, p.arn("lambda", *p.Region(), *p.Account(),
			"function:"+p.functionName(f)+":"+aliasName))
	}
	return st
}

// deleteTemplates is for the ones that age out and for those of a deleted class.
func (p permissions) deleteTemplates() statement {
	return statement{sid: "DeleteOwnLaunchTemplates", changes: true, actions: []string{"ec2:DeleteLaunchTemplate"},
		resources: []string{p.ec2("launch-template/*")}, when: p.ownedTags()}
}
