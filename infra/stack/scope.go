package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/constructs-go/constructs/v10"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/model/naming"
)

// scope is the CloudFormation stack with its settings, and the names and ARNs in it.
type scope struct {
	awscdk.Stack
	props   Props
	cluster string
	names   naming.Names
}

// newScope adds an empty stack to the app.
func newScope(parent constructs.Construct, props Props) scope {
	cluster, names := props.Functions.ClusterName, props.names()
	name := names.Stack()
	return scope{props: props, cluster: cluster, names: names,
		Stack: awscdk.NewStack(parent, jsii.String(props.stackID()), &awscdk.StackProps{
			StackName:             &name,
			Env:                   props.environment(),
			Description:           jsii.String("Joiner: nodes for the EKS cluster " + cluster),
			TerminationProtection: &props.Stack.TerminationProtection,
			Synthesizer: awscdk.NewDefaultStackSynthesizer(&awscdk.DefaultStackSynthesizerProps{
				// which would add a parameter that serves nothing here
				GenerateBootstrapVersionRule: jsii.Bool(false),
			}),
		})}
}

func (s scope) addOutput(name, value, description string) {
	awscdk.NewCfnOutput(s.Stack, &name, &awscdk.CfnOutputProps{Value: &value, Description: &description})
}

// functionName is the name by which functions invoke each other. It is a plain string, so that two functions may know
// each other without a circle in the template.
func (s scope) functionName(function string) string { return s.names.Function(function) }

// arn is an ARN in the stack's partition. Region and account go in as they are, empty for services without them.
func (s scope) arn(service, region, account, resource string) string {
	return fmt.Sprintf("arn:%s:%s:%s:%s:%s", *s.Partition(), service, region, account, resource)
}

func (s scope) ec2(resource string) string { return s.arn("ec2", *s.Region(), *s.Account(), resource) }

func (s scope) anyAccount(resource string) string { return s.arn("ec2", *s.Region(), "*", resource) }

// tagCluster is the tag of everything that belongs to the cluster; its value is "owned".
func (s scope) tagCluster() string { return "kubernetes.io/cluster/" + s.cluster }

// rolePath is the path of roles and instance profiles; nil: that of all that has none.
func (s scope) rolePath() *string {
	if s.props.Stack.RolePath == "/" {
		return nil
	}
	return &s.props.Stack.RolePath
}
