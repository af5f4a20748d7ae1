// Package stack knows the AWS resources of Joiner for one cluster and how they are wired: functions, roles, rules,
// queues, the catalog bucket, access entries. It refuses to know what the functions do. Limits: one stack per cluster
// and region.
package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsevents"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslogs"
	"github.com/aws/aws-cdk-go/awscdk/v2/awss3"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssqs"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/naming"
	"joiner.sh/pkg/model/version"
)

// Objects of the catalog bucket: the catalog, and the cluster's certificate authority once it is another one than the
// preflight found. Beside them stands what lifecycle knows of a large cluster, for processes that start.
const (
	CatalogKey   = "catalog.json.gz"
	MetricsKey   = "metrics.json.gz"
	AuthorityKey = "cluster-ca"
	// CheckpointKey is written by lifecycle.
	CheckpointKey = "cluster-checkpoint"
)

// catalogExpiryDays is far more than a catalog that is refreshed every 5 minutes can reach: it clears what a deleted
// stack left behind.
const catalogExpiryDays = 90

// mostPassDays caps the days for which whole passes are kept, which are large.
const mostPassDays = 90

// joiner is the stack while it is being built.
type joiner struct {
	scope
	programs  map[string]program // by function
	bucket    awss3.Bucket
	nodeRoles []string // ARNs, that of Linux nodes first
	madeRoles []string // names of those that the stack makes

	net    network
	secret awssecretsmanager.Secret // path of push; nil: off
	key    awskms.IKey              // of the user's, for all that is kept; nil: keys of AWS

	ticks schedules

	preflight awscdk.CustomResource // what it answers the functions are told

	// What addSetup brings into order.
	made    map[string]madeFunction // by name
	entries []awscdk.CfnResource    // access entries
	rules   []awscdk.CfnResource    // and schedules
	ways    []awscdk.CfnResource    // by which functions in a VPC reach the cluster and AWS
	joining []awscdk.CfnResource    // by which nodes belong to the cluster
}

// madeFunction is a function of the template with its way into the cluster and what others invoke it by.
type madeFunction struct {
	function
	fn          awslambda.Function
	logs        awslogs.LogGroup
	role        awsiam.Role
	entrance    awslambda.IFunction
	deadLetters awssqs.Queue // nil: none
	queue       awssqs.Queue // of its events; nil: its rules invoke it
	entry       awscdk.CfnResource
	schedule    awscdk.CfnResource // nil: it does not tick
	eventRules  []awsevents.Rule
}

// resourceOf returns the one resource of the template that a construct is about.
func resourceOf(c constructs.IConstruct) awscdk.CfnResource {
	return c.Node().DefaultChild().(awscdk.CfnResource)
}

// New adds the stack to the app. It fails, before anything is made, when a function has not been built.
func New(parent constructs.Construct, props Props) (awscdk.Stack, error) {
	functions := props.functions()
	programs := map[string]program{}
	for _, f := range functions {
		found, err := props.findProgram(f.name)
		if err != nil {
			return nil, err
		}
		programs[f.name] = found
	}
	s := &joiner{scope: newScope(parent, props), programs: programs, made: map[string]madeFunction{}}
	s.addRegionConditions()
	s.applyCompanyRules()
	s.addBucket()
	s.addNodeRoles()
	s.addNetwork()
	s.addSecret()
	s.ticks = newSchedules(s, functions)
	for _, f := range functions {
		if f.inCluster() && s.preflight == nil {
			s.addPreflight(functions)
		}
		if err := s.addFunction(f); err != nil {
			return nil, err
		}
	}
	s.keepWritersOut()
	if err := s.addSetup(); err != nil {
		return nil, err
	}
	m := monitoring{scope: s.scope, key: s.key, push: s.secret != nil, made: s.made}
	m.addAlarms(functions)
	m.addDashboard(functions)
	m.addQueries()
	s.addOutput("Version", version.Number, "The release of Joiner")
	s.addOutput("CatalogBucket", *s.bucket.BucketName(), "Where the catalog of instance types and prices is kept")
	s.addOutput("NodeRoleArn", s.nodeRoles[0], "The role of the nodes; name it in spec.role of an EC2NodeClass")
	for _, f := range functions {
		s.addOutput(f.id+"RoleArn", *s.made[f.name].fn.Role().RoleArn(),
			"The role of "+f.name+", for policies of your own")
	}
	return s.Stack, nil
}

// addBucket makes the bucket of the catalog. It outlives the stack, since CloudFormation cannot delete a bucket with an
// object in it and the object can be made again at any time.
func (s *joiner) addBucket() {
	encryption := awss3.BucketEncryption_S3_MANAGED
	var bucketKey *bool // asks KMS once for many objects
	if s.key != nil {
		encryption, bucketKey = awss3.BucketEncryption_KMS, jsii.Bool(true)
	}
	s.bucket = awss3.NewBucket(s.Stack, jsii.String("Catalog"), &awss3.BucketProps{
		BlockPublicAccess: awss3.BlockPublicAccess_BLOCK_ALL(),
		Encryption:        encryption,
		EncryptionKey:     s.key,
		BucketKeyEnabled:  bucketKey,
		EnforceSSL:        jsii.Bool(true),
		RemovalPolicy:     awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE,
		LifecycleRules: &[]*awss3.LifecycleRule{{
			Id: jsii.String("leftovers"), AbortIncompleteMultipartUploadAfter: awscdk.Duration_Days(jsii.Number(1)),
			Expiration: awscdk.Duration_Days(jsii.Number(catalogExpiryDays)),
		}, {
			Id: jsii.String("passes"), Prefix: jsii.String(decisionlog.Prefix),
			Expiration: awscdk.Duration_Days(jsii.Number(min(s.props.Stack.LogRetentionDays, mostPassDays))),
		}, {
			// which nobody believes after half an hour
			Id: jsii.String("checkpoint"), Prefix: jsii.String(CheckpointKey),
			Expiration: awscdk.Duration_Days(jsii.Number(1)),
		}},
	})
	// A bucket that stays keeps the policy that refuses plain HTTP.
	s.bucket.Policy().ApplyRemovalPolicy(awscdk.RemovalPolicy_RETAIN_ON_UPDATE_OR_DELETE)
}

// keepWritersOut lets the functions write to the bucket and nobody else: they believe what is in it, prices above all.
func (s *joiner) keepWritersOut() {
	var roles []any
	for _, name := range sortedKeys(s.made) {
		if !s.made[name].called && !s.made[name].outside {
			roles = append(roles, *s.made[name].role.RoleArn())
		}
	}
	s.bucket.AddToResourcePolicy(awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
		Sid: jsii.String("OnlyFunctionsWrite"), Effect: awsiam.Effect_DENY,
		Principals: &[]awsiam.IPrincipal{awsiam.NewAnyPrincipal()}, Actions: jsii.Strings("s3:PutObject"),
		Resources:  &[]*string{s.bucket.ArnForObjects(jsii.String("*"))},
		Conditions: &map[string]any{"ArnNotEquals": map[string]any{"aws:PrincipalArn": roles}},
	}))
}

func (p Props) names() naming.Names {
	return naming.Names{Prefix: p.Stack.NamePrefix, Cluster: p.Functions.ClusterName}
}

// readCheckpoint is for processes that start, which know what lifecycle knew.
func (p permissions) readCheckpoint() statement {
	return statement{sid: "ReadCheckpoint", actions: []string{"s3:GetObject"},
		resources: []string{*p.bucket.BucketArn() + "/" + CheckpointKey}}
}
