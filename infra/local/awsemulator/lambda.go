package awsemulator

import (
	"context"
	"net/http"
	"strings"

	"joiner.sh/infra/local/awsemulator/wire"
)

// lambda is Lambda, and the quotas of the account.
type lambda struct {
	*account
	functions   map[string]DescribedFunction // by name
	quotas      map[string]quota             // by code
	concurrency int
	policies    map[string]string // by name, or name:alias
}

// InvokeRequest is a Lambda invocation that somebody asked the account for.
type InvokeRequest struct {
	Function string // name, or name:alias, without the rest of an ARN
	Type     string // RequestResponse, Event or DryRun
	Payload  []byte
	Trace    string // header of X-Ray, which tells of the invocations that led to this one
	Caller   Caller
}

// InvokeResponse is what became of it.
type InvokeResponse struct {
	Unknown       bool   // there is no such function
	Throttled     bool   // its concurrency is used up
	Recursive     bool   // Lambda stopped a chain of invocations of it
	FunctionError string // "Unhandled" when the function failed
	Payload       []byte
}

func (c *account) lambdaOperations() map[string]operation {
	return map[string]operation{"Invoke": c.lambda.invokeFunction,
		"GetFunctionConfiguration": c.lambda.getFunctionConfiguration,
		"GetPolicy":                c.lambda.getPolicy,
		"GetFunctionConcurrency":   c.lambda.getFunctionConcurrency, "GetAccountSettings": c.lambda.getAccountSettings}
}

// qualifiedName is the name in a bare name, a partial or a whole ARN, with the version or alias if there is one.
func qualifiedName(ref string) string {
	if _, after, ok := strings.Cut(ref, "function:"); ok {
		return after
	}
	return ref
}

// invokeFunction hands the invocation to Options.Invoke. For type Event the callback must return once it has queued it.
func (c *lambda) invokeFunction(r *call) (any, error) {
	in := InvokeRequest{Function: qualifiedName(r.pathPart(2)), Type: r.http.Header.Get("X-Amz-Invocation-Type"),
		Payload: r.body, Trace: r.http.Header.Get("X-Amzn-Trace-Id"), Caller: r.caller}
	if in.Type == "" {
		in.Type = "RequestResponse"
	}
	status, known := map[string]int{"RequestResponse": 200, "Event": 202, "DryRun": 204}[in.Type]
	if !known {
		return nil, wire.Fail(400, "InvalidParameterValueException", "Unknown invocation type %s", in.Type)
	}
	out := InvokeResponse{Unknown: true}
	if c.opt.Invoke != nil {
		// A hang-up of the client does not stop a function that runs.
		out = c.opt.Invoke(context.WithoutCancel(r.http.Context()), in)
	}
	switch {
	case out.Unknown:
		return nil, wire.Fail(404, "ResourceNotFoundException", "Function not found: arn:aws:lambda:%s:%s:function:%s",
			c.opt.Region, c.opt.Account, in.Function)
	case out.Recursive:
		return nil, wire.Fail(400, "RecursiveInvocationException", "Lambda has detected your function being invoked in a recursive loop and stopped its invocation.")
	case out.Throttled:
		return nil, wire.Fail(429, "TooManyRequestsException", "Rate Exceeded.")
	}
	return func(w http.ResponseWriter) {
		w.Header().Set("X-Amzn-Requestid", r.id)
		if status == http.StatusOK {
			w.Header().Set("X-Amz-Executed-Version", "$LATEST")
			if out.FunctionError != "" {
				w.Header().Set("X-Amz-Function-Error", out.FunctionError)
			}
		}
		w.WriteHeader(status)
		if status == http.StatusOK {
			_, _ = w.Write(out.Payload) // a client that went away is its own loss
		}
	}, nil
}
