package lambdahost

import (
	"context"
	"encoding/json"
	"fmt"
)

// Invocation types of Lambda's Invoke.
const (
	RequestResponse = "RequestResponse"
	Event           = "Event"
	DryRun          = "DryRun"
)

// Lambda's limits of an event.
const (
	maxSyncPayload  = 6 << 20
	maxAsyncPayload = 1 << 20
)

// Error is a refusal of Lambda's API.
type Error struct {
	Status  int
	Code    string
	Message string
	Reason  string // of a throttle
}

// Error gives code and message.
func (e *Error) Error() string { return e.Code + ": " + e.Message }

// Result is what Lambda's Invoke answers.
type Result struct {
	Status        int    // 200, 202 for Event, 204 for DryRun
	FunctionError string // empty, or Unhandled with the error as payload
	Payload       []byte
	LogTail       []byte // the last 4 KB of the log of a synchronous invocation
	RequestID     string
}

// InvokeFunction calls a function by name, ARN or partial ARN. An empty type is RequestResponse; an empty payload is
// null. Its own errors are of type *Error, or the context's; an error of the function is part of the result. A caller
// that goes away does not stop the function, as in Lambda.
func (h *Host) InvokeFunction(ctx context.Context, name, kind string, payload []byte) (Result, error) {
	f, err := h.findFunction(name)
	if err != nil {
		return Result{}, err
	}
	if len(payload) == 0 {
		payload = []byte("null")
	}
	if !json.Valid(payload) {
		return Result{}, &Error{Status: 400, Code: "InvalidRequestContentException",
			Message: "Could not parse request body into json"}
	}
	limit := maxSyncPayload
	if kind == Event {
		limit = maxAsyncPayload
	}
	if len(payload) > limit {
		return Result{}, &Error{Status: 413, Code: "RequestTooLargeException",
			Message: fmt.Sprintf("Request must be smaller than %d bytes for the InvokeFunction operation", limit)}
	}
	chain := readLineage(ctx).withRun(f.Name)
	if chain[f.Name] > mostRecursion && kind != DryRun && !f.MayLoop {
		h.updateStats(f, func(s *FunctionStats) { s.Recursions++ })
		return Result{}, &Error{Status: 400, Code: "RecursiveInvocationException",
			Message: "Lambda has detected your function being invoked in a recursive loop and stopped its invocation."}
	}
	id := newID()
	switch kind {
	case DryRun:
		return Result{Status: 204, RequestID: id}, nil
	case Event:
		h.enqueueEvent(f, id, payload, chain)
		return Result{Status: 202, RequestID: id}, nil
	case RequestResponse, "":
		return h.invokeNow(ctx, f, id, payload, chain)
	default:
		return Result{}, &Error{Status: 400, Code: "InvalidParameterValueException",
			Message: "unknown invocation type " + kind}
	}
}

func (h *Host) invokeNow(ctx context.Context, f *function, id string, payload []byte, chain lineage) (Result, error) {
	answer := make(chan outcome, 1)
	h.work.Go(func() { answer <- f.runAttempt(id, payload, chain) })
	select {
	case o := <-answer:
		switch {
		case o.throttled:
			reason := "ConcurrentInvocationLimitExceeded"
			if f.Reserved != nil {
				reason = "ReservedFunctionConcurrentInvocationLimitExceeded"
			}
			return Result{}, &Error{Status: 429, Code: "TooManyRequestsException", Message: "Rate Exceeded.",
				Reason: reason}
		case o.closed || o.err != nil:
			return Result{}, &Error{Status: 500, Code: "ServiceException", Message: string(o.payload)}
		}
		return Result{Status: 200, FunctionError: o.fault, Payload: o.payload, LogTail: o.logTail, RequestID: id}, nil
	case <-ctx.Done():
		return Result{}, fmt.Errorf("invoke %s: %w", f.Name, ctx.Err())
	}
}
