// Command wake runs provision or lifecycle when the cluster's webhook calls. Called by anybody who has its address;
// believes nothing.
package main

import (
	"context"
	"log"

	"github.com/aws/aws-lambda-go/lambda"

	"joiner.sh/pkg/app/pushed"
)

func main() {
	desk, err := pushed.FromEnv(context.Background())
	if err != nil {
		log.Fatalf("wake: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(desk.HandleRequest)
}
