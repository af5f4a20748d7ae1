package app

import (
	"context"
	"net/http"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/model/trace"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/otlp"
	"joiner.sh/pkg/providers/prometheus"
)

// newTracer is what collects and sends spans, nil where nothing is sent.
func newTracer(a *App) *controllers.Tracer {
	set := a.set.Traces
	if set.URL == "" {
		return nil
	}
	if problem := set.Problem(); problem != "" {
		a.log.Error("traces are not sent: " + problem)
		return nil
	}
	var auth prometheus.Authenticator
	if set.Secret != "" {
		auth = newSecret(a.aws, set.Secret)
	}
	return &controllers.Tracer{Now: time.Now, Log: a.log, Writer: &otlp.Writer{URL: set.URL, Version: version.Number,
		Transport: prometheus.NewTransport(http.DefaultTransport, auth),
		Resource: []trace.Attribute{trace.Text("service.name", "joiner"), trace.Text("service.version", version.Number),
			trace.Text("k8s.cluster.name", a.set.ClusterName)}}}
}

// beginTrace begins the span of an invocation of the function. The invocation calls end when all else is done.
func beginTrace(ctx context.Context, a *App, function string) (under context.Context, end func(error)) {
	if a.tracer == nil {
		return ctx, func(error) {}
	}
	about := []trace.Attribute{trace.Text("faas.name", function)}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		about = []trace.Attribute{trace.Text("faas.name", lambdacontext.FunctionName),
			trace.Text("faas.invocation_id", lc.AwsRequestID)}
	}
	return a.tracer.BeginInvocation(ctx, function, about...)
}
