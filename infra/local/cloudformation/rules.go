package cloudformation

import (
	"reflect"
	"slices"
	"strings"
)

// What CloudFormation does with a stack, and who says so besides this package. The player enforces each rule.
//
//   - A resource is created after what it depends on, by DependsOn, Ref, Fn::GetAtt or Fn::Sub, and deleted before it.
//     Witness: user guide, DependsOn; moto 5.2.1, which orders resources so.
//   - What no dependency orders happens in parallel.
//     Witness: user guide, DependsOn, "in parallel to the extent possible".
//   - A failed creation is rolled back: all that it made is deleted, leaves first.
//     Witness: user guide, stack failure options.
//   - Retain keeps a resource in every deletion of it, RetainExceptOnCreate in all but the rollback of the operation
//     that made it. Witness: template reference, DeletionPolicy; moto 5.2.1 for Retain, and it does not know the other.
//   - A bucket with an object in it cannot be deleted. Witness: S3 API, DeleteBucket, "All objects (including all
//     object versions and delete markers) in the bucket must be deleted before the bucket itself can be deleted".
//   - What an update replaces is kept with UpdateReplacePolicy Retain, whatever DeletionPolicy says.
//     Witness: template reference, UpdateReplacePolicy.
//   - An update creates and changes first, and deletes what was replaced or left out when all of that is done. What
//     cannot be deleted then does not fail it. Witness: user guide, UPDATE_COMPLETE_CLEANUP_IN_PROGRESS.
//   - A changed property that a type has as createOnly replaces the resource, with a new physical id.
//     Witness: template reference, "Update requires"; schemas that cfn-lint 1.58.0 ships, in testdata/schemas.json.
//   - A resource with a name of its own is not replaced by one of the same name. Witness: user guide, name type.
//   - Nor are there two of what an account has once, whatever their names: an alias of a function, a policy of a
//     bucket, of a queue or of a topic, a mapping of a queue to a function, private DNS of a service in a VPC.
//     Witness: primary identifiers in testdata/schemas.json for alias, invocations, URL and bucket policy; EC2 API,
//     CreateVpcEndpoint, "a private hosted zone with the specified VPC"; Lambda API, CreateEventSourceMapping,
//     ResourceConflictException; SNS API, Subscribe, which answers with the subscription that is there.
//   - A deletion goes on with what does not depend on a failure, ends in DELETE_FAILED, and another one begins with
//     what is left. Witness: user guide, "delete stack fails".
//   - A custom resource answers by an object in S3; without an answer in ServiceTimeout it fails.
//     Witness: template reference, AWS::CloudFormation::CustomResource.
//   - Another physical id in the answer to an update is a replacement. Witness: user guide, request types.
//   - A creation that failed, with an answer or without one, gets a Delete in the rollback.
//     Witness: aws-lambda-go, whose cfn.LambdaWrap gives such answers an id for that.
//   - A custom resource whose update failed gets another one with the previous properties. Where that fails too, the
//     stack is UPDATE_ROLLBACK_FAILED. Witness: CDK, custom-resources README, "If an Update event fails, CloudFormation
//     will issue an additional Update with the previous properties".
//   - Publishing a version of a function whose code and configuration are those of the last version makes none, and the
//     resource fails. Concurrency, tags and recursive loops are no part of either, nor is the description of the
//     version. Witness: Lambda API, PublishVersion, "Lambda doesn't publish a version if the function's configuration
//     and code haven't changed since the last version"; aws-cdk#5334, "A version for this Lambda function exists".
//   - What failed to be updated is put back like what was changed. Where somebody took it away outside of
//     CloudFormation, neither succeeds: the stack is UPDATE_ROLLBACK_FAILED. Then nothing but the rollback can be gone
//     on with, and what is skipped counts as put back. Witness: user guide, Troubleshooting CloudFormation, "Update
//     rollback failed": "a stack that's rolling back to an old database instance that was deleted outside of
//     CloudFormation"; CloudFormation API, ContinueUpdateRollback, ResourcesToSkip.
//   - What differs between two templates is changed, and nothing else is touched, however it differs in the account.
//     Witness: user guide, Update behaviors of stack resources; Detect unmanaged configuration changes with drift.
//   - An attribute of a custom resource that its answer has not fails who refers to it. Witness: user guide, Custom
//     resources, "Data"; its message is "Vendor response doesn't contain NAME attribute in object".
//   - The service token of a custom resource cannot be changed. Witness: template reference, ServiceToken.

// Deletion policies.
const (
	retain               = "Retain"
	retainExceptOnCreate = "RetainExceptOnCreate"
)

// rule is what a type of resource does in an update, and how it takes its time.
type rule struct {
	name     string   // the property that gives it a name of its own
	unique   []string // properties that no two resources may have alike
	replaced []string // properties whose change makes another resource
	all      bool     // every change does
	slow     bool     // it takes minutes, in which whatever may happen does
}

// typeRules are those of the types that a template of ours may have.
func typeRules() map[string]rule {
	return map[string]rule{
		"AWS::CDK::Metadata":              {},
		"AWS::CloudWatch::Alarm":          {name: "AlarmName", replaced: []string{"AlarmName"}},
		"AWS::CloudWatch::CompositeAlarm": {name: "AlarmName", replaced: []string{"AlarmName"}},
		"AWS::CloudWatch::Dashboard":      {name: "DashboardName", replaced: []string{"DashboardName"}},
		"AWS::EC2::SecurityGroup": {name: "GroupName", replaced: []string{
			"GroupDescription", "GroupName", "VpcId",
		}},
		"AWS::EC2::SecurityGroupIngress": {replaced: ingressKeys(), unique: ingressKeys()},
		"AWS::EC2::VPCEndpoint": {replaced: []string{
			"ResourceConfigurationArn", "ServiceName", "ServiceNetworkArn", "ServiceRegion",
			"VpcEndpointType", "VpcId",
		}, unique: []string{"PrivateDnsEnabled", "ServiceName", "VpcId"}, slow: true},
		"AWS::EKS::AccessEntry": {replaced: []string{"ClusterName", "PrincipalArn", "Type"}},
		"AWS::Events::Rule":     {name: "Name", replaced: []string{"Name"}},
		"AWS::IAM::InstanceProfile": {name: "InstanceProfileName", replaced: []string{
			"InstanceProfileName", "Path",
		}},
		"AWS::IAM::Role": {name: "RoleName", replaced: []string{"Path", "RoleName"}},
		"AWS::Lambda::Alias": {name: "Name", replaced: []string{"FunctionName", "Name"},
			unique: []string{"FunctionName", "Name"}},
		"AWS::Lambda::EventInvokeConfig": {replaced: []string{"FunctionName", "Qualifier"},
			unique: []string{"FunctionName", "Qualifier"}},
		"AWS::Lambda::EventSourceMapping": {replaced: []string{
			"EventSourceArn", "SelfManagedEventSource", "StartingPosition", "StartingPositionTimestamp",
		}, unique: []string{"EventSourceArn", "FunctionName"}},
		"AWS::Lambda::Function": {name: "FunctionName", replaced: []string{
			"FunctionName", "PackageType", "TenancyConfig",
		}},
		"AWS::Lambda::Permission": {all: true},
		"AWS::Lambda::Url": {replaced: []string{"Qualifier", "TargetFunctionArn"},
			unique: []string{"Qualifier", "TargetFunctionArn"}},
		"AWS::Lambda::Version":       {replaced: versionKeys()},
		"AWS::Logs::LogGroup":        {name: "LogGroupName", replaced: []string{"LogGroupName"}},
		"AWS::Logs::QueryDefinition": {},
		"AWS::S3::Bucket": {name: "BucketName", replaced: []string{
			"BucketName", "BucketNamePrefix", "BucketNamespace",
		}},
		"AWS::S3::BucketPolicy": {replaced: []string{"Bucket"}, unique: []string{"Bucket"}},
		"AWS::SNS::Subscription": {replaced: []string{"Endpoint", "Protocol", "TopicArn"},
			unique: []string{"Endpoint", "Protocol", "TopicArn"}},
		"AWS::SNS::Topic":                     {name: "TopicName", replaced: []string{"FifoTopic", "TopicName"}},
		"AWS::SNS::TopicPolicy":               {unique: []string{"Topics"}},
		"AWS::SQS::Queue":                     {name: "QueueName", replaced: []string{"FifoQueue", "QueueName"}},
		"AWS::SQS::QueuePolicy":               {unique: []string{"Queues"}},
		"AWS::Scheduler::Schedule":            {name: "Name", replaced: []string{"Name"}},
		"AWS::Scheduler::ScheduleGroup":       {name: "Name", replaced: []string{"Name"}},
		"AWS::SecretsManager::Secret":         {name: "Name", replaced: []string{"Name"}},
		"AWS::CloudFormation::CustomResource": {slow: true},
	}
}

func ingressKeys() []string {
	return []string{"CidrIp", "CidrIpv6", "FromPort", "GroupId", "GroupName", "IpProtocol", "SourcePrefixListId",
		"SourceSecurityGroupId", "SourceSecurityGroupName", "SourceSecurityGroupOwnerId", "ToPort"}
}

func versionKeys() []string {
	return []string{"CodeSha256", "Description", "FunctionName", "ProvisionedConcurrencyConfig", "RuntimePolicy"}
}

// isCustom reports whether a function answers for resources of the type.
func isCustom(kind string) bool {
	return strings.HasPrefix(kind, "Custom::") || kind == "AWS::CloudFormation::CustomResource"
}

// ruleOf is the rule of a type; false for a type that nobody has written one for.
func ruleOf(kind string) (rule, bool) {
	if isCustom(kind) {
		kind = "AWS::CloudFormation::CustomResource"
	}
	r, ok := typeRules()[kind]
	return r, ok
}

// needsReplacement reports whether a change of these properties makes another resource.
func (r rule) needsReplacement(changed []string) bool {
	return r.all && len(changed) > 0 ||
		slices.ContainsFunc(changed, func(p string) bool { return slices.Contains(r.replaced, p) })
}

// sameIdentity reports whether two resources of the type are for the same, which no account has twice.
func (r rule) sameIdentity(one, other map[string]any) bool {
	return len(r.unique) > 0 && !slices.ContainsFunc(r.unique, func(p string) bool {
		return !reflect.DeepEqual(one[p], other[p])
	})
}

// isRetained reports whether a resource stays that is to be deleted. Rollback is for one of the operation that made it.
func isRetained(policy string, rollback bool) bool {
	return policy == retain || policy == retainExceptOnCreate && !rollback
}
