// Package wake has Lambda run another function soon. It knows asynchronous invocation and nothing of what the function does.
package wake

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Function is one function of the stack. With an empty name there is nobody to wake and every call is a success: the schedule
// runs the function within a minute anyway.
type Function struct {
	Lambda *lambda.Client
	Name   string
	Reason string // who wakes; travels as the payload, for the logs
}

// Wake queues one asynchronous invocation. Repeating it runs the function once more, which every function allows.
func (f Function) Wake(ctx context.Context) error {
	if f.Name == "" {
		return nil
	}
	_, err := f.Lambda.Invoke(ctx, &lambda.InvokeInput{
		FunctionName:   aws.String(f.Name),
		InvocationType: types.InvocationTypeEvent,
		Payload:        fmt.Appendf(nil, `{"source":"joiner","detail-type":"wake","detail":{"by":%q}}`, f.Reason),
	})
	if err != nil {
		return fmt.Errorf("invoke function %s: %w", f.Name, err)
	}
	return nil
}
