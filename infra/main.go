// Command infra is the CDK app: it turns the settings in cdk.json into the CloudFormation templates of Joiner, one for
// each cluster. Run it through the CDK command line (make synth, make deploy), which tells it where to write.
package main

import (
	"log"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/infra/joiner"
)

func main() {
	if err := synth(); err != nil {
		log.Fatalf("infra: %v", err)
	}
}

func synth() error {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	if _, err := joiner.NewClustersFromContext(app); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}
