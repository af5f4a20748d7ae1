// Command setup answers CloudFormation for the stack's custom resources: it checks the cluster, puts CRDs and RBAC into
// it, and takes Joiner's hold off it when the stack is deleted.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"joiner.sh/pkg/app"
)

func main() {
	lambda.Start(app.AnswerCloudFormation)
}
