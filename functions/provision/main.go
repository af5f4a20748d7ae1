// Command provision launches capacity for pods that have nowhere to run. Scheduled once a minute, and invoked when
// nodes go away.
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
		log.Fatalf("provision: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.Provision)
}
