package app

import (
	"context"
	"runtime"
	"runtime/debug"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"joiner/pkg/controllers/remotewrite"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/timeseries"
	"joiner/pkg/providers/prometheus"
	"joiner/pkg/settings"
)

// newRecorder is what counts and sends for Prometheus, nil where nothing is sent.
func newRecorder(a *App) *remotewrite.Recorder {
	set := a.set.RemoteWrite
	if set.URL == "" {
		return nil
	}
	if problem := set.Problem(); problem != "" {
		a.log.Error("metrics are not sent: " + problem)
		return nil
	}
	detail := map[string]timeseries.Detail{settings.RemoteWriteCluster: timeseries.Cluster,
		settings.RemoteWriteNodes: timeseries.Nodes, settings.RemoteWriteAll: timeseries.All}[set.Detail]
	return &remotewrite.Recorder{
		Store: &prometheus.StateStore[remotewrite.State]{S3: s3.NewFromConfig(a.aws, pathStyle),
			Bucket: a.set.CatalogBucket},
		Writer: &prometheus.Writer{URL: set.URL, Auth: remoteWriteAuth(a.aws, set),
			Labels: map[string]string{"cluster": a.set.ClusterName}},
		Around: surroundings{a}, Options: timeseries.Options{Detail: detail, Build: buildLabels()}, Now: time.Now,
		Log: a.log}
}

func remoteWriteAuth(cfg aws.Config, set settings.RemoteWrite) prometheus.Authenticator {
	switch set.Auth {
	case settings.RemoteWriteSecret:
		return &prometheus.Secret{Secrets: secretsmanager.NewFromConfig(cfg), ID: set.Secret, Now: time.Now}
	case settings.RemoteWriteSigV4:
		region := cfg.Region
		if _, of := set.WorkspaceID(); of != "" {
			region = of
		}
		return prometheus.SigV4{Credentials: cfg.Credentials, Region: region, Now: time.Now}
	}
	return nil
}

// buildLabels are those of karpenter_build_info.
func buildLabels() map[string]string {
	out := map[string]string{"goversion": runtime.Version(), "goarch": runtime.GOARCH, "version": "joiner"}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				out["commit"] = s.Value
			}
		}
	}
	return out
}

// surroundings are what lifecycle does not read by itself.
type surroundings struct{ a *App }

// ReadSurroundings adds the catalog and what is not to be had.
func (r surroundings) ReadSurroundings(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals,
	error) {
	var err error
	if s.Catalog, _, err = r.a.store.ReadCatalog(ctx); err != nil {
		return s, nil, err
	}
	s.SoldOut, err = r.a.ledger.ListUnavailable(ctx)
	return s, nil, err
}
