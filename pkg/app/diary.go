package app

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/archive"
	"joiner.sh/pkg/settings"
)

// decisionLog is the decision log as the settings want it. Passes in which something fails are stored whatever they
// want, if there is a bucket. It writes in mode observe too: it changes neither cluster nor EC2.
func (a *App) decisionLog() controllers.DecisionLog {
	w := archive.PassWriter{Log: a.log, S3: s3.NewFromConfig(a.aws, pathStyle), Bucket: a.set.CatalogBucket,
		Of: archive.Whole}
	switch a.set.DecisionLog {
	case settings.DecisionLogOff:
		w.Of = archive.Nothing
	case settings.DecisionLogLines:
		w.Of = archive.InLog
	}
	return w
}

// passStamp says whose pass a record is about.
func (a *App) passStamp(ctx context.Context) decisionlog.PassStamp {
	st := decisionlog.PassStamp{Cluster: a.set.ClusterName, Version: lambdacontext.FunctionVersion,
		Release: version.Number, Mode: a.set.Mode}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		st.Invocation = lc.AwsRequestID
	}
	return st
}

// pathStyle lets buckets be reached at an endpoint that is no name.
func pathStyle(o *s3.Options) { o.UsePathStyle = os.Getenv("AWS_ENDPOINT_URL") != "" }
