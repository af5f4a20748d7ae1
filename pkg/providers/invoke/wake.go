// Package invoke has Lambda run another function soon. It knows asynchronous invocation and nothing of what the
// function does.
package invoke

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/lambda/types"
)

// Reasons that make a difference to who is woken.
const (
	Push  = "push"  // the webhook of the cluster called
	Clock = "clock" // the schedule
)

// Reason returns why a function was invoked, as far as its payload says: what Function wrote, or Clock; else "".
func Reason(payload []byte) string {
	var p struct {
		Source string
		Detail json.RawMessage // of EventBridge Scheduler a text
	}
	switch err := json.Unmarshal(payload, &p); {
	case err != nil:
		return ""
	case p.Source == "aws.scheduler" || p.Source == "aws.events": // a rule, of a stack that is being updated
		return Clock
	case p.Source == source:
		var detail struct{ By string }
		if json.Unmarshal(p.Detail, &detail) == nil {
			return detail.By
		}
	}
	return ""
}

// source marks the payloads of our own.
const source = "joiner"

// Function is one function of the stack. With an empty name there is nobody to wake and every call is a success: the
// schedule runs the function within a minute anyway.
type Function struct {
	Lambda *lambda.Client
	Name   string
	Reason string // who wakes; travels as the payload, for the logs
}

// wakeTimeout bounds a wake, retries included. A pass waits for it, and the schedule runs the function within a minute
// anyway.
const wakeTimeout = 3 * time.Second

// Wake queues one asynchronous invocation. Repeating it runs the function once more, which every function allows.
func (f Function) Wake(ctx context.Context) error {
	if f.Name == "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, wakeTimeout)
	defer cancel()
	_, err := f.Lambda.Invoke(ctx, &lambda.InvokeInput{
		FunctionName:   aws.String(f.Name),
		InvocationType: types.InvocationTypeEvent,
		Payload:        fmt.Appendf(nil, `{"source":%q,"detail-type":"wake","detail":{"by":%q}}`, source, f.Reason),
	})
	if err != nil {
		return fmt.Errorf("invoke function %s: %w", f.Name, err)
	}
	return nil
}
