// Command disrupt decides which nodes go by choice: empty, drifted, or dearer than their pods need. Scheduled once a
// minute.
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
		log.Fatalf("disrupt: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.Disrupt)
}
