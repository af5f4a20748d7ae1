// Command lifecycle brings NodeClaims into service and out of it again. Scheduled once a minute, and invoked when one
// has a next step.
package main

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"joiner.sh/pkg/app"
)

func main() {
	a, err := app.FromEnv(context.Background())
	if err != nil {
		log.Fatalf("lifecycle: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.Lifecycle)
}
