// Command reservationinterruption has the pods of an instance that loses its capacity reservation moved in time.
// Triggered by the interruption warning.
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
		log.Fatalf("reservationinterruption: %v", err) // a cold start that cannot work must be loud
	}
	lambda.Start(a.ReservationInterruption)
}
