package app

import (
	"context"
	"os"

	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner/pkg/archive"
	"joiner/pkg/control"
	"joiner/pkg/gate"
	"joiner/pkg/setting"
	"joiner/pkg/tick"
)

// diary is the decision log as the settings want it. Passes in which something fails are stored whatever they want, if there is a bucket. It
// writes in mode observe too: it changes neither cluster nor EC2.
func (a *App) diary() control.Diary {
	d := archive.Diary{Log: a.log, S3: s3.NewFromConfig(a.aws, pathStyle), Bucket: a.set.CatalogBucket, Of: archive.Whole}
	switch a.set.DecisionLog {
	case setting.DecisionLogOff:
		d.Of = archive.Nothing
	case setting.DecisionLogLines:
		d.Of = archive.InLog
	}
	return observed{d, a.gate}
}

// observed says of each pass whether it could change anything: with mode act it cannot while another controller leads.
type observed struct {
	to   control.Diary
	gate *gate.Gate
}

func (o observed) Note(ctx context.Context, t tick.Tick) error {
	if open, err := o.gate.Open(ctx); err == nil && !open {
		t.Mode = setting.ModeObserve
	}
	return o.to.Note(ctx, t)
}

// stamp says whose pass a record is about.
func (a *App) stamp(ctx context.Context) tick.Stamp {
	st := tick.Stamp{Cluster: a.set.ClusterName, Version: lambdacontext.FunctionVersion, Mode: a.set.Mode}
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		st.Invocation = lc.AwsRequestID
	}
	return st
}

// pathStyle lets buckets be reached at an endpoint that is no name.
func pathStyle(o *s3.Options) { o.UsePathStyle = os.Getenv("AWS_ENDPOINT_URL") != "" }
