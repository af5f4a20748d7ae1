// Command preflight answers CloudFormation, before the stack makes anything else, whether the cluster and the account
// can have the stack, and what is to be mended when not.
package main

import (
	"github.com/aws/aws-lambda-go/lambda"

	"joiner.sh/pkg/app"
)

func main() {
	lambda.Start(app.AnswerCloudFormation)
}
