package stack

import (
	"fmt"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/awslambda"
	"github.com/aws/aws-cdk-go/awscdk/v2/awssecretsmanager"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/pkg/install/preflight"
	"joiner.sh/pkg/settings"
)

// secretLength is the number of letters and digits in the path: more than anybody guesses, about 285 bits.
const secretLength = 48

// checkPush finds a region in which push cannot be had.
func checkPush(p Props) error {
	if region := p.Stack.Region; region != "" && p.Functions.Trigger == settings.TriggerPush &&
		!preflight.HasFunctionURLs(region) {
		return fmt.Errorf("settings: trigger is push, which needs a function URL, and Lambda has none in %s: choose watch or schedule", region)
	}
	return nil
}

// addSecret makes the path that the cluster's webhook calls. Only its place is in the template and in the events of
// CloudFormation; wake and setup get it in their environment. It is made with push and goes with it, so switching push
// off and on makes another.
func (s *joiner) addSecret() {
	if s.props.Functions.Trigger != settings.TriggerPush {
		return
	}
	s.secret = awssecretsmanager.NewSecret(s.Stack, jsii.String("PushPath"), &awssecretsmanager.SecretProps{
		Description:   jsii.String("Path of the URL by which cluster " + s.cluster + " wakes Joiner"),
		RemovalPolicy: awscdk.RemovalPolicy_DESTROY,
		EncryptionKey: s.key,
		GenerateSecretString: &awssecretsmanager.SecretStringGenerator{
			ExcludePunctuation: jsii.Bool(true), PasswordLength: jsii.Number(secretLength),
		},
	})
}

// addURL lets anybody call the function by the URL that it returns: the API server has no credentials of AWS. What
// keeps others out is the path, and what bounds their calls the function's concurrency of one.
func (s *joiner) addURL(f madeFunction) *string {
	url := f.entrance.AddFunctionUrl(&awslambda.FunctionUrlOptions{AuthType: awslambda.FunctionUrlAuthType_NONE})
	return url.Url()
}
