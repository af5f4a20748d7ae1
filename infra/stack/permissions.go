package stack

import (
	"cmp"
	"fmt"
	"strings"

	"joiner/pkg/decisionlog"
	"joiner/pkg/settings"
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

// conditions are operator, then key, then values.
type conditions map[string]map[string][]string

// The tags that mark what is ours. Every create call must carry all three, every change and
// deletion works only on what carries the first two.
const (
	tagNodePool    = "karpenter.sh/nodepool"
	tagNodeClaim   = "karpenter.sh/nodeclaim"
	tagNodeClass   = "karpenter.k8s.aws/ec2nodeclass"
	tagClusterName = "eks:eks-cluster-name"
	tagRegion      = "topology.kubernetes.io/region"
)

// tagCluster is the tag of everything that belongs to the cluster; its value is "owned".
func (s *joiner) tagCluster() string { return "kubernetes.io/cluster/" + s.cluster }

// commonAllows is what every function needs; one that is called only a log. Lambda itself uses all but the last in the
// name of the role.
func (s *joiner) commonAllows(f madeFunction, logGroup string) []statement {
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
	if s.key != nil && (f.deadLetters != nil || f.queue != nil || !f.called) {
		out = append(out, statement{sid: "UseKey", actions: []string{"kms:Decrypt", "kms:GenerateDataKey"},
			resources: []string{*s.key.KeyArn()}, when: conditions{"StringEquals": {"kms:ViaService": {
				"s3." + *s.Region() + "." + *s.UrlSuffix(), "sqs." + *s.Region() + "." + *s.UrlSuffix()}}}})
	}
	if f.called {
		return out
	}
	if s.props.Stack.Tracing {
		// X-Ray knows no resources.
		out = append(out, statement{sid: "SendTraces",
			actions: []string{"xray:PutTraceSegments", "xray:PutTelemetryRecords"}, resources: []string{"*"}})
	}
	if s.net.vpc != nil && !f.outside {
		out = append(out, s.useNetwork(f.function)...)
	}
	if f.inCluster() && !f.asksEKS {
		out = append(out, statement{sid: "ReadAuthority", actions: []string{"s3:GetObject"},
			resources: []string{*s.bucket.BucketArn() + "/" + AuthorityKey}})
	}
	return out
}

// findCluster is for setup, and for refresh where the cluster's certificate authority changed. EKS throttles whoever
// asks it often, so that nobody else does.
func (s *joiner) findCluster() statement {
	return statement{sid: "FindCluster", actions: []string{"eks:DescribeCluster"},
		resources: []string{s.arn("eks", *s.Region(), *s.Account(), "cluster/"+s.cluster)}}
}

func provisionAllows(s *joiner) []statement {
	return append(append(append(append(s.launch(), s.storeTicks()...), s.readShifts()...),
		s.describe("DescribeLaunched", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances"),
		s.describeLevels(),
		s.passNodeRole(),
		s.readCatalog(),
		s.wake("lifecycle", "refresh"),
	), s.givenStatements()...)
}

// givenStatements are the user's own, such as for the KMS key of volumes.
func (s *joiner) givenStatements() []statement {
	var out []statement
	for i, g := range s.props.Stack.ProvisionStatements {
		out = append(out, statement{sid: cmp.Or(g.SID, fmt.Sprintf("Given%d", i+1)), actions: g.Actions,
			resources: g.Resources, when: g.Conditions, changes: true})
	}
	return out
}

func lifecycleAllows(s *joiner) []statement {
	return append(s.remoteWrite(),
		s.describe("DescribeLaunched", "ec2:DescribeLaunchTemplates", "ec2:DescribeInstances"),
		s.describe("DescribeHealth", "ec2:DescribeInstanceStatus"),
		statement{sid: "TagOwnInstances", actions: []string{"ec2:CreateTags"}, resources: []string{s.ec2("instance/*")},
			changes: true,
			when: s.owned().and("StringEqualsIfExists", "aws:RequestTag/"+tagClusterName, s.cluster).
				and("ForAllValues:StringEquals", "aws:TagKeys", tagClusterName, tagNodeClaim, "Name")},
		statement{sid: "TerminateOwnInstances", actions: []string{"ec2:TerminateInstances"},
			resources: []string{s.ec2("instance/*")}, when: s.owned(), changes: true},
		s.deleteTemplates(),
		s.wake("provision", "refresh"))
}

// remoteWrite is for metrics that are sent to Prometheus, and what is remembered of them.
func (s *joiner) remoteWrite() []statement {
	set := s.props.Functions.RemoteWrite
	if set.URL == "" {
		return nil
	}
	catalog := s.readCatalog()
	catalog.resources = append(catalog.resources, *s.bucket.BucketArn()+"/"+MetricsKey)
	out := []statement{catalog, {sid: "StoreMetrics", actions: []string{"s3:PutObject"},
		resources: []string{*s.bucket.BucketArn() + "/" + MetricsKey}}}
	workspace, region := set.WorkspaceID()
	switch {
	case set.Auth == settings.RemoteWriteSecret:
		out = append(out, statement{sid: "ReadSecret", actions: []string{"secretsmanager:GetSecretValue"},
			resources: []string{set.Secret}})
	case set.Auth == settings.RemoteWriteSigV4 && workspace != "":
		out = append(out, statement{sid: "SendMetrics", actions: []string{"aps:RemoteWrite"},
			resources: []string{s.arn("aps", region, *s.Account(), "workspace/"+workspace)}})
	}
	return out
}

// Disrupt writes its intents into the cluster; provision launches and lifecycle drains.
func disruptAllows(s *joiner) []statement {
	return append(append(s.storeTicks(), s.readShifts()...),
		s.describe("DescribeInstances", "ec2:DescribeInstances"), // whether they are where their class would put them
		s.readCatalog(), s.describeLevels(), s.wake("provision", "lifecycle"))
}

// storeTicks is for passes that are kept whole: those in which something failed, or all of them for the decision log.
func (s *joiner) storeTicks() []statement {
	return []statement{{sid: "StorePasses", actions: []string{"s3:PutObject"},
		resources: []string{*s.bucket.BucketArn() + "/" + decisionlog.Prefix + "*"}}}
}

// readShifts is for zones that the cluster is shifted away from. IAM knows no cluster as a resource of ARC, only as the
// value of a condition key.
func (s *joiner) readShifts() []statement {
	if !s.props.Functions.ZonalShift {
		return nil
	}
	return []statement{{sid: "ReadZonalShifts", actions: []string{"arc-zonal-shift:GetManagedResource"},
		resources: []string{"*"}, when: conditions{"StringEquals": {"arc-zonal-shift:ResourceIdentifier": {
			s.arn("eks", *s.Region(), *s.Account(), "cluster/"+s.cluster)}}}}}
}

// describeLevels is what decisions about capacity need to know that changes with every launch.
func (s *joiner) describeLevels() statement {
	return s.describe("DescribeLevels", "ec2:DescribeCapacityReservations", "ec2:DescribeSubnets",
		"ec2:DescribePlacementGroups")
}

func refreshAllows(s *joiner) []statement {
	var rehearse []statement // EC2 answers a dry run only to who may do the deed
	if s.props.Functions.DryRunValidation {
		rehearse = s.launch()
	}
	var commitments []statement // those of EC2 and of Savings Plans know no resources
	if s.props.Functions.Commitments {
		commitments = []statement{
			s.describe("DescribeReservedAndRunning", "ec2:DescribeReservedInstances", "ec2:DescribeInstances"),
			{sid: "DescribeSavingsPlans", actions: []string{"savingsplans:DescribeSavingsPlans",
				"savingsplans:DescribeSavingsPlanRates"}, resources: []string{"*"}},
		}
	}
	return append(append(append([]statement{
		s.findCluster(),
		s.describe("DescribeNetworkAndImages", "ec2:DescribeSubnets", "ec2:DescribeSecurityGroups",
			"ec2:DescribeImages",
			"ec2:DescribeCapacityReservations", "ec2:DescribePlacementGroups"),
		s.describe("DescribeOffers", "ec2:DescribeInstanceTypes", "ec2:DescribeInstanceTypeOfferings",
			"ec2:DescribeSpotPriceHistory"),
		{sid: "ReadImageParameters", actions: []string{"ssm:GetParameter"},
			resources: append([]string{s.arn("ssm", *s.Region(), "", "parameter/aws/service/*")},
				s.imageParameters()...)},
		// The price list lives in other regions, so no region can be asked for.
		{sid: "ReadPrices", actions: []string{"pricing:GetProducts"}, resources: []string{"*"}},
		s.describe("DescribeTemplates", "ec2:DescribeLaunchTemplates"),
		s.deleteTemplates(),
		s.passNodeRole(),
		s.readCatalog(),
		{sid: "WriteCatalog", actions: []string{"s3:PutObject"},
			resources: []string{*s.bucket.BucketArn() + "/" + CatalogKey, *s.bucket.BucketArn() + "/" + AuthorityKey}},
	}, s.instanceProfiles()...), commitments...), rehearse...)
}

// imageParameters are those that hold images of the user's own.
func (s *joiner) imageParameters() []string {
	var out []string
	for _, name := range s.props.Stack.ImageParameters {
		out = append(out, s.arn("ssm", *s.Region(), *s.Account(), "parameter/"+strings.TrimPrefix(name, "/")))
	}
	return out
}

// Notices about instances are handled in the cluster; EC2 is told by lifecycle and provision.
func wakesBoth(s *joiner) []statement {
	return []statement{s.wake("provision", "lifecycle")}
}

// No claim is deleted on a recommendation until there is a replacement, so that there is nothing for lifecycle.
func wakesProvision(s *joiner) []statement {
	return []statement{s.wake("provision")}
}

// The preflight reads what decides whether the stack can be deployed.
func preflightAllows(s *joiner) []statement { return readForPreflight(s) }

// Setup works in the cluster. To drain it, it has lifecycle do its work. In an account without the role of spot it
// makes that.
func setupAllows(s *joiner) []statement {
	const spot = "spot.amazonaws.com"
	return append([]statement{
		s.findCluster(),
		{sid: "CreateSpotRole", changes: true, actions: []string{"iam:CreateServiceLinkedRole"},
			resources: []string{s.arn("iam", "", *s.Account(), "role/aws-service-role/"+spot+"/*")},
			when:      conditions{"StringEquals": {"iam:AWSServiceName": {spot}}}},
		s.wake("lifecycle"),
	}, removeLeftovers(s)...)
}

// removeLeftovers is for a stack that takes its nodes with it: setup deletes the instance profiles that refresh made,
// or IAM would not let go of the node role, and the launch templates.
func removeLeftovers(s *joiner) []statement {
	if s.props.Stack.OnDelete != settings.OnDeleteDrain {
		return nil
	}
	return []statement{
		listProfiles(s),
		{sid: "RemoveInstanceProfile", changes: true, resources: profiles(s), when: taggedProfile(s, "Resource"),
			actions: []string{"iam:RemoveRoleFromInstanceProfile", "iam:DeleteInstanceProfile"}},
		s.describe("DescribeTemplates", "ec2:DescribeLaunchTemplates"),
		s.deleteTemplates(),
	}
}

// launch is W1 to W4 of the spec: what a launch may use, and that all it makes is tagged as ours.
func (s *joiner) launch() []statement {
	run := []string{"ec2:RunInstances", "ec2:CreateFleet"}
	made := []string{
		s.ec2("fleet/*"), s.ec2("instance/*"), s.ec2("volume/*"),
		s.ec2("network-interface/*"), s.ec2("launch-template/*"), s.ec2("spot-instances-request/*"),
	}
	return []statement{
		{sid: "LaunchFrom", changes: true, actions: run, resources: []string{
			s.arn("ec2", *s.Region(), "", "image/*"), s.arn("ec2", *s.Region(), "", "snapshot/*"),
			s.anyAccount("security-group/*"), s.anyAccount("subnet/*"),
			s.anyAccount("capacity-reservation/*"), s.anyAccount("placement-group/*"),
		}},
		{sid: "LaunchFromOwnTemplate", changes: true, actions: run, resources: []string{s.ec2("launch-template/*")},
			when: s.owned()},
		{sid: "LaunchTagged", changes: true, actions: append(run, "ec2:CreateLaunchTemplate"), resources: made,
			when: s.requestedAsOwned()},
		{sid: "TagWhatIsLaunched", changes: true, actions: []string{"ec2:CreateTags"}, resources: made,
			when: s.requestedAsOwned().and("StringEquals", "ec2:CreateAction", "RunInstances", "CreateFleet",
				"CreateLaunchTemplate")},
	}
}

// profiles are the instance profiles that refresh makes. Their path is known, so nothing else can be touched.
func profiles(s *joiner) []string {
	return []string{s.arn("iam", "", *s.Account(), "instance-profile/karpenter/"+*s.Region()+"/"+s.cluster+"/*")}
}

// taggedProfile holds for profiles with the tags of ours, on the request or on the resource.
func taggedProfile(s *joiner, kind string) conditions {
	return conditions{
		"StringEquals": {"aws:" + kind + "Tag/" + s.tagCluster(): {"owned"}, "aws:" + kind + "Tag/" +
			tagRegion: {*s.Region()}},
		"StringLike": {"aws:" + kind + "Tag/" + tagNodeClass: {"*"}},
	}
}

// listProfiles cannot be limited to a path.
func listProfiles(s *joiner) statement {
	return statement{sid: "ListInstanceProfiles", actions: []string{"iam:ListInstanceProfiles"}, resources: []string{"*"}}
}

// instanceProfiles is R9 and M2 to M4 of the spec.
func (s *joiner) instanceProfiles() []statement {
	own := profiles(s)
	asked := taggedProfile(s, "Request").and("StringEquals", "aws:RequestTag/"+tagClusterName, s.cluster)
	both := taggedProfile(s, "Resource").
		and("StringEquals", "aws:RequestTag/"+s.tagCluster(), "owned").
		and("StringEquals", "aws:RequestTag/"+tagRegion, *s.Region()).
		and("StringEquals", "aws:RequestTag/"+tagClusterName, s.cluster).
		and("StringLike", "aws:RequestTag/"+tagNodeClass, "*")
	return []statement{
		{sid: "ReadInstanceProfiles", actions: []string{"iam:GetInstanceProfile"},
			resources: []string{s.arn("iam", "", *s.Account(), "instance-profile/*")}},
		listProfiles(s),
		{sid: "CreateInstanceProfile", changes: true, actions: []string{"iam:CreateInstanceProfile"},
			resources: own, when: asked},
		{sid: "TagInstanceProfile", changes: true, actions: []string{"iam:TagInstanceProfile"}, resources: own,
			when: both},
		{sid: "ChangeInstanceProfile", changes: true, resources: own, when: taggedProfile(s, "Resource"),
			actions: []string{"iam:AddRoleToInstanceProfile", "iam:RemoveRoleFromInstanceProfile",
				"iam:DeleteInstanceProfile"}},
	}
}

func (s *joiner) passNodeRole() statement {
	return statement{sid: "PassNodeRole", changes: true, actions: []string{"iam:PassRole"}, resources: s.nodeRoles,
		when: conditions{"StringEquals": {"iam:PassedToService": {"ec2.amazonaws.com", "ec2.amazonaws.com.cn"}}}}
}

// describe allows reads that IAM cannot narrow to a resource; the region is the only limit there is.
func (s *joiner) describe(sid string, actions ...string) statement {
	return statement{sid: sid, actions: actions, resources: []string{"*"},
		when: conditions{"StringEquals": {"aws:RequestedRegion": {*s.Region()}}}}
}

// readCatalog includes listing, without which S3 says "access denied" instead of "no such key" before the first
// refresh.
func (s *joiner) readCatalog() statement {
	return statement{sid: "ReadCatalog", actions: []string{"s3:GetObject", "s3:ListBucket"},
		resources: []string{*s.bucket.BucketArn(), *s.bucket.BucketArn() + "/" + CatalogKey}}
}

func (s *joiner) wake(functions ...string) statement {
	st := statement{sid: "WakeFunctions", actions: []string{"lambda:InvokeFunction"}}
	for _, f := range functions {
		st.resources = append(st.resources, s.arn("lambda", *s.Region(), *s.Account(),
			"function:"+s.functionName(f)+":"+aliasName))
	}
	return st
}

// deleteTemplates is for the ones that age out and for those of a deleted class.
func (s *joiner) deleteTemplates() statement {
	return statement{sid: "DeleteOwnLaunchTemplates", changes: true, actions: []string{"ec2:DeleteLaunchTemplate"},
		resources: []string{s.ec2("launch-template/*")}, when: s.owned()}
}

// owned holds for things that we tagged when we made them.
func (s *joiner) owned() conditions {
	return conditions{
		"StringEquals": {"aws:ResourceTag/" + s.tagCluster(): {"owned"}},
		"StringLike":   {"aws:ResourceTag/" + tagNodePool: {"*"}},
	}
}

// requestedAsOwned holds for calls that tag what they make as ours.
func (s *joiner) requestedAsOwned() conditions {
	return conditions{
		"StringEquals": {"aws:RequestTag/" + s.tagCluster(): {"owned"}, "aws:RequestTag/" +
			tagClusterName: {s.cluster}},
		"StringLike": {"aws:RequestTag/" + tagNodePool: {"*"}},
	}
}

// and adds one test to conditions made for this statement alone.
func (c conditions) and(operator, key string, values ...string) conditions {
	if c[operator] == nil {
		c[operator] = map[string][]string{}
	}
	c[operator][key] = values
	return c
}

func (s *joiner) ec2(resource string) string {
	return s.arn("ec2", *s.Region(), *s.Account(), resource)
}
func (s *joiner) anyAccount(resource string) string { return s.arn("ec2", *s.Region(), "*", resource) }
