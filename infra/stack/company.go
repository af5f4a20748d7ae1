package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/aws-cdk-go/awscdk/v2/awskms"
	"github.com/aws/jsii-runtime-go"
)

// applyCompanyRules reads the key of the settings, and applies the permissions boundary and the tags to everything that
// is added afterwards.
func (s *joiner) applyCompanyRules() {
	set := s.props.Stack
	if set.KMSKey != "" {
		s.key = awskms.Key_FromKeyArn(s.Stack, jsii.String("Key"), &set.KMSKey)
	}
	if set.PermissionsBoundary != "" {
		awsiam.PermissionsBoundary_Of(s.Stack).Apply(awsiam.ManagedPolicy_FromManagedPolicyArn(s.Stack,
			jsii.String("Boundary"), &set.PermissionsBoundary))
	}
	for _, t := range set.Tags {
		awscdk.Tags_Of(s.Stack).Add(&t.Key, &t.Value,
			&awscdk.TagProps{ExcludeResourceTypes: jsii.Strings("AWS::Lambda::EventSourceMapping")}) // see tagMapping
	}
}

// tagMapping gives an event source mapping the tags of everything, where such have tags.
func (s *joiner) tagMapping(mapping awscdk.CfnResource) {
	var tags []any
	for _, t := range s.props.Stack.Tags {
		tags = append(tags, map[string]any{"Key": t.Key, "Value": t.Value})
	}
	if len(tags) > 0 {
		setWhere(mappingTags, mapping, "Tags", tags)
	}
}

// environment is the place of the stack; nil: that of the credentials.
func (p Props) environment() *awscdk.Environment {
	if p.Stack.Account == "" && p.Stack.Region == "" {
		return nil
	}
	out := &awscdk.Environment{}
	if p.Stack.Account != "" {
		out.Account = &p.Stack.Account
	}
	if p.Stack.Region != "" {
		out.Region = &p.Stack.Region
	}
	return out
}

// stackID tells the stack from the others of the app: two clusters in different places may have one name.
func (p Props) stackID() string {
	id := p.names().Stack()
	for _, part := range []string{p.Stack.Account, p.Stack.Region} {
		if part != "" {
			id += "-" + part
		}
	}
	return id
}
