// Command refresh keeps the catalog of instance types and prices and the status of EC2NodeClasses up to date. Scheduled
// every five minutes.
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
		log.Fatalf("refresh: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.Refresh)
}
