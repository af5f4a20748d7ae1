package cloudformation

import (
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
//   - What an update replaces is kept with UpdateReplacePolicy Retain, whatever DeletionPolicy says.
//     Witness: template reference, UpdateReplacePolicy.
//   - An update creates and changes first, and deletes what was replaced or left out when all of that is done. What
//     cannot be deleted then does not fail it. Witness: user guide, UPDATE_COMPLETE_CLEANUP_IN_PROGRESS.
//   - A changed property that a type has as createOnly replaces the resource, with a new physical id.
//     Witness: template reference, "Update requires"; schemas that cfn-lint 1.58.0 ships, in testdata/schemas.json.
//   - A resource with a name of its own is not replaced by one of the same name. Witness: user guide, name type.
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
//   - The service token of a custom resource cannot be changed. Witness: template reference, ServiceToken.

// Deletion policies.
const (
	retain               = "Retain"
	retainExceptOnCreate = "RetainExceptOnCreate"
)

// rule is what a type of resource does in an update, and how it takes its time.
type rule struct {
	name     string   // the property that gives it a name of its own
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
		"AWS::EC2::SecurityGroupIngress": {replaced: ingressKeys()},
		"AWS::EC2::VPCEndpoint": {replaced: []string{
			"ResourceConfigurationArn", "ServiceName", "ServiceNetworkArn", "ServiceRegion",
			"VpcEndpointType", "VpcId",
		}, slow: true},
		"AWS::EKS::AccessEntry": {replaced: []string{"ClusterName", "PrincipalArn", "Type"}},
		"AWS::Events::Rule":     {name: "Name", replaced: []string{"Name"}},
		"AWS::IAM::InstanceProfile": {name: "InstanceProfileName", replaced: []string{
			"InstanceProfileName", "Path",
		}},
		"AWS::IAM::Role":                 {name: "RoleName", replaced: []string{"Path", "RoleName"}},
		"AWS::Lambda::Alias":             {name: "Name", replaced: []string{"FunctionName", "Name"}},
		"AWS::Lambda::EventInvokeConfig": {replaced: []string{"FunctionName", "Qualifier"}},
		"AWS::Lambda::EventSourceMapping": {replaced: []string{
			"EventSourceArn", "SelfManagedEventSource", "StartingPosition", "StartingPositionTimestamp",
		}},
		"AWS::Lambda::Function": {name: "FunctionName", replaced: []string{
			"FunctionName", "PackageType", "TenancyConfig",
		}},
		"AWS::Lambda::Permission":    {all: true},
		"AWS::Lambda::Url":           {replaced: []string{"Qualifier", "TargetFunctionArn"}},
		"AWS::Lambda::Version":       {replaced: versionKeys()},
		"AWS::Logs::LogGroup":        {name: "LogGroupName", replaced: []string{"LogGroupName"}},
		"AWS::Logs::QueryDefinition": {},
		"AWS::S3::Bucket": {name: "BucketName", replaced: []string{
			"BucketName", "BucketNamePrefix", "BucketNamespace",
		}},
		"AWS::S3::BucketPolicy":               {replaced: []string{"Bucket"}},
		"AWS::SNS::Subscription":              {replaced: []string{"Endpoint", "Protocol", "TopicArn"}},
		"AWS::SNS::Topic":                     {name: "TopicName", replaced: []string{"FifoTopic", "TopicName"}},
		"AWS::SNS::TopicPolicy":               {},
		"AWS::SQS::Queue":                     {name: "QueueName", replaced: []string{"FifoQueue", "QueueName"}},
		"AWS::SQS::QueuePolicy":               {},
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

// isRetained reports whether a resource stays that is to be deleted. Rollback is for one of the operation that made it.
func isRetained(policy string, rollback bool) bool {
	return policy == retain || policy == retainExceptOnCreate && !rollback
}
