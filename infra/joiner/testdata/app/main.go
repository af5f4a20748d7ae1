// Command app is a CDK app of a company, in a module of its own: it makes a stack with other things and has Joiner
// beside it. The one argument is the folder of the functions.
package main

import (
	"log"
	"os"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/jsii-runtime-go"

	"joiner.sh/infra/joiner"
)

func main() {
	defer jsii.Close()
	app := awscdk.NewApp(nil)
	shared := awscdk.NewStack(app, jsii.String("shared"), nil)
	awscdk.NewCfnOutput(shared, jsii.String("Team"), &awscdk.CfnOutputProps{Value: jsii.String("platform")})
	nodes, err := joiner.NewCluster(app, joiner.ClusterProps{ClusterName: "prod", Functions: os.Args[1],
		Settings: map[string]any{"mode": "observe", "tags": map[string]string{"team": "platform"}}})
	if err != nil {
		log.Fatal(err)
	}
	nodes.Stack.AddDependency(shared, nil)
	app.Synth(nil)
}
