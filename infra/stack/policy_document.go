package stack

import (
	"github.com/aws/aws-cdk-go/awscdk/v2/awsiam"
	"github.com/aws/jsii-runtime-go"
)

// document is the policy with these statements, in their order.
func document(statements []statement) awsiam.PolicyDocument {
	out := make([]awsiam.PolicyStatement, len(statements))
	for i, st := range statements {
		when := map[string]any{}
		for operator, tests := range st.when {
			inner := map[string]any{}
			for key, values := range tests {
				inner[key] = oneOrMany(values)
			}
			when[operator] = inner
		}
		effect := awsiam.Effect_ALLOW
		if st.denies {
			effect = awsiam.Effect_DENY
		}
		out[i] = awsiam.NewPolicyStatement(&awsiam.PolicyStatementProps{
			Effect: effect, Sid: jsii.String(st.sid), Actions: jsii.Strings(st.actions...),
			Resources: jsii.Strings(st.resources...), Conditions: &when,
		})
	}
	return awsiam.NewPolicyDocument(&awsiam.PolicyDocumentProps{Statements: &out})
}

// oneOrMany returns the form in which policies write lists of one.
func oneOrMany(values []string) any {
	if len(values) == 1 {
		return values[0]
	}
	return values
}
