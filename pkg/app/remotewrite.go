package app

import (
	"cmp"
	"context"
	"debug/elf"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/secretsmanager"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/timeseries"
	"joiner.sh/pkg/providers/prometheus"
	"joiner.sh/pkg/settings"
)

// newRecorder returns the recorder that counts and sends for Prometheus, nil where nothing is sent.
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
		Writer: &prometheus.Writer{URL: set.URL, Auth: newAuthenticator(a.aws, set),
			// dashboards and alerts for Karpenter ask for this job
			Labels: map[string]string{"cluster": a.set.ClusterName, "job": "karpenter"}},
		Around: surroundings{a}, Options: timeseries.Options{Detail: detail, Build: buildLabels()}, Now: time.Now,
		Log: a.log}
}

// passTotals returns the store where provision and disrupt count, nil where nothing is sent.
func (a *App) passTotals() controllers.PassTotals {
	if a.set.RemoteWrite.URL == "" {
		return nil
	}
	return a.kube.Leases
}

func newAuthenticator(cfg aws.Config, set settings.RemoteWrite) prometheus.Authenticator {
	switch {
	case set.Secret != "":
		return newSecret(cfg, set.Secret)
	case set.Signed():
		region := cfg.Region
		if _, of := set.WorkspaceID(); of != "" {
			region = of
		}
		return prometheus.SigV4{Credentials: cfg.Credentials, Region: region, Now: time.Now}
	}
	return nil
}

func newSecret(cfg aws.Config, arn string) *prometheus.Secret {
	return &prometheus.Secret{Secrets: secretsmanager.NewFromConfig(cfg), ID: arn, Now: time.Now}
}

// buildLabels returns the labels of karpenter_build_info.
func buildLabels() map[string]string {
	out := map[string]string{"goversion": runtime.Version(), "goarch": runtime.GOARCH}
	info, ok := debug.ReadBuildInfo()
	if ok && info.Main.Version != "(devel)" {
		out["version"] = info.Main.Version
	}
	if out["version"] == "" {
		out["version"] = programID("/proc/self/exe")
	}
	if ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				out["commit"] = s.Value
			}
		}
	}
	return out
}

// programID tells one build from another: the part of Go's build ID that is a hash of the program. It is "devel" for
// what is no such program.
func programID(path string) string {
	const unknown, header = "devel", 16 // of a note: three lengths and the name Go
	program, err := os.Open(path)
	if err != nil {
		return unknown
	}
	defer program.Close()
	f, err := elf.NewFile(program)
	if err != nil {
		return unknown
	}
	note := f.Section(".note.go.buildid")
	if note == nil {
		return unknown
	}
	text, err := note.Data()
	if err != nil || len(text) <= header {
		return unknown
	}
	id := strings.TrimRight(string(text[header:]), "\x00")
	return cmp.Or(id[strings.LastIndex(id, "/")+1:], unknown)
}

// surroundings reads what lifecycle does not read by itself.
type surroundings struct{ a *App }

// ReadSurroundings adds the catalog, what is not to be had, and what provision and disrupt counted. How nodes stood in
// the last pass of disrupt is left out where there is none any more.
func (r surroundings) ReadSurroundings(ctx context.Context, s cluster.Snapshot) (cluster.Snapshot, timeseries.Totals,
	error) {
	var err error
	if s.Catalog, _, err = r.a.store.ReadCatalog(ctx); err != nil {
		return s, nil, err
	}
	if s.Unavailable, err = r.a.ledger.ListUnavailable(ctx); err != nil {
		return s, nil, err
	}
	totals, err := r.a.kube.ReadTotals(ctx, controllers.CapacityLeaseName)
	if len(s.Claims) == 0 || r.a.set.Disruption == settings.DisruptionOff {
		totals = totals.WithoutGauges()
	}
	return s, totals, err
}
