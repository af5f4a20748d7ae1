// Command infra is the CDK app: it turns the settings in cdk.json into the CloudFormation templates of Joiner, one for
// each cluster. Run it through the CDK command line (make synth, make deploy), which tells it where to write. A release
// has it as the program joiner-cdk.
package main

import (
	"flag"
	"fmt"
	"log"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/infra/joiner"
	"joiner.sh/infra/stack"
)

func main() {
	log.SetFlags(0) // who reads it types the command
	var from joiner.Files
	flag.StringVar(&from.Functions, "functions", "", "folder with <arch>/<function>.zip; without it .local/dist")
	flag.StringVar(&from.Settings, "settings", "", "JSON file with settings, beside those of cdk.json and -c")
	flag.Parse()
	if err := synth(from); err != nil {
		log.Fatalf("infra: %v", err)
	}
}

func synth(from joiner.Files) error {
	defer jsii.Close()
	if flag.NArg() > 0 {
		return fmt.Errorf("%q is not expected: settings are given with -settings", flag.Arg(0))
	}
	app := awscdk.NewApp(stack.AppProps())
	if _, err := joiner.NewClustersFromFiles(app, from); err != nil {
		return err
	}
	app.Synth(nil)
	return nil
}
