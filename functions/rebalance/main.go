// Command rebalance tells of recommendations to leave a spot instance, or has its node replaced. Triggered by the
// recommendation.
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
		log.Fatalf("rebalance: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.Rebalance)
}
