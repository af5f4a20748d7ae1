// Command infra is the CDK app: it turns the settings in cdk.json into the CloudFormation templates of Joiner, one for
// each cluster. Run it through the CDK command line (make synth, make deploy), which tells it where to write.
package main

import (
	"cmp"
	"log"
	"time"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"joiner/infra/stack"
)

func main() {
	if err := synth(); err != nil {
		log.Fatalf("infra: %v", err)
	}
}

func synth() error {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	clusters, err := stack.FromContext(app.Node())
	if err != nil {
		return err
	}
	now := time.Now().UTC().Format(time.RFC3339)
	for _, props := range clusters {
		props.Stack.Deployment = cmp.Or(props.Stack.Deployment, now)
		if _, err := stack.New(app, props); err != nil {
			return err
		}
	}
	app.Synth(nil)
	return nil
}
