package app

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/iam"
	"github.com/aws/aws-sdk-go-v2/service/ssm"

	"joiner.sh/events"
	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/settings"
)

// Refresh brings the catalog and the status of classes and pools up to date. The catalog does not need the cluster, so
// it is refreshed even when the cluster cannot be asked. The event may be that the stack was deployed.
func (a *App) Refresh(ctx context.Context, event json.RawMessage) error {
	if _, no := events.DecodeDeployed(event); no == nil {
		a.deployed = time.Now()
	}
	a.findAuthority = func(ctx context.Context) (string, error) { return describeAuthority(ctx, a) }
	info, err := clusterInfoNow(ctx, a)
	r := a.newRefresh(info)
	if err != nil {
		r.Finder = nil
	}
	return awaitManifests(a, errors.Join(err, r.Run(ctx)))
}

func (a *App) newRefresh(info launch.Cluster) refresh.Controller {
	finder := &discovery.ClassResolver{EC2: ec2.NewFromConfig(a.aws), SSM: ssm.NewFromConfig(a.aws),
		IAM:    iam.NewFromConfig(a.aws),
		Region: a.aws.Region, Cluster: info.Name, Version: info.Version, CIDR: info.ServiceCIDR,
		Isolated: a.set.IsolatedVPC, Now: time.Now}
	looking := *finder
	looking.Isolated = true // makes no instance profile
	r := refresh.Controller{Deps: a.newDeps(""), Every: settings.RefreshInterval,
		Finder: finder, Preview: &looking, Classes: classWriter{a.kube.Classes},
		Pools: poolWriter{a.kube.Pools, a.kube.Claims}, Nodes: a.kube.Nodes, Market: newCatalogRefresher(a),
		Overlays: a.kube.Overlays, Buffers: a.kube.Buffers, Prices: a.store, Cluster: info, Deployed: a.deployed}
	if a.set.DryRunValidation {
		r.Rehearse = a.fleet
	}
	return r
}

// classWriter writes EC2NodeClasses through the Kubernetes adapter.
type classWriter struct{ kube.Classes }

// MarkClass sets annotations and our finalizer.
func (c classWriter) MarkClass(ctx context.Context, name string, annotations map[string]string) error {
	return c.PatchClassMeta(ctx, name, kube.MetaChange{Annotations: annotations,
		AddFinalizer: awsv1.FinalizerTermination})
}

// ReleaseClass removes our finalizer.
func (c classWriter) ReleaseClass(ctx context.Context, name string) error {
	return c.PatchClassMeta(ctx, name, kube.MetaChange{DropFinalizer: awsv1.FinalizerTermination})
}

// poolWriter writes NodePools and annotates their NodeClaims.
type poolWriter struct {
	kube.Pools
	kube.Claims
}

func newCatalogRefresher(a *App) *discovery.CatalogRefresher {
	r := discovery.NewMarket(a.aws, a.store, a.set.IsolatedVPC, time.Now)
	if share := a.set.Commitments; share > 0 {
		r = r.WithCommitments(a.aws, a.set.ClusterName, share)
	}
	return r
}
