// Command scheduledchange has nodes left before EC2 reboots, stops or retires their instances. Triggered by AWS Health.
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
		log.Fatalf("scheduledchange: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.ScheduledChange)
}
