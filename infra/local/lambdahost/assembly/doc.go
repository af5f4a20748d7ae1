// Package assembly reads a synthesized CDK cloud assembly and says what is in it: functions, rules, permissions, roles,
// queues, buckets, access entries, instance profiles.
//
// It resolves the intrinsic functions and pseudo parameters of CloudFormation that it meets, and gives resources
// without a name a stable one. A resource type or intrinsic that it does not know is an error, never skipped: what
// deploys in AWS and is missing here would make a local run prove nothing. It starts nothing and calls nobody.
package assembly
