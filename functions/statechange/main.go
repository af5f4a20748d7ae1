// Command statechange brings running instances into service and lets go of ended ones. Triggered by the state changes
// of all instances of the account.
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
		log.Fatalf("statechange: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.StateChange)
}
