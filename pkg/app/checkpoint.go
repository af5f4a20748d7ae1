package app

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/archive"
	"joiner.sh/pkg/providers/kube"
)

// useCheckpoints has the cache of a new process begin with what lifecycle knew of the same cluster, written by the same
// release.
func useCheckpoints(a *App) {
	a.cache.Checkpoints.Use(kube.CheckpointOptions{
		Store: archive.CheckpointStore{S3: s3.NewFromConfig(a.aws, pathStyle), Bucket: a.set.CatalogBucket},
		Of:    a.set.ClusterName + " at " + a.set.ClusterEndpoint + " by " + version.Number,
		Tell:  a.log.Info,
	})
}

// writeCheckpoint stores what the cache knows between two invocations. What fails is logged: the next process lists.
func writeCheckpoint(ctx context.Context, a *App) {
	if err := a.cache.Checkpoints.Write(ctx); err != nil {
		a.log.Warn("processes that start will list the cluster", "error", err.Error())
	}
}
