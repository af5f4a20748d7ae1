package app

import (
	"cmp"
	"context"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/spotpools"
	model "joiner.sh/pkg/model/spotpools"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/settings"
)

// interruptionFactor is how much more it costs by default that a pod is moved by an interruption, which leaves two
// minutes and no replacement ahead, than by choice.
const interruptionFactor = 10

// podInterruptionCost is the setting as decisions know it.
func podInterruptionCost(v settings.Values) float64 {
	if v.PodInterruptionCostUSD == settings.Auto {
		return interruptionFactor * v.PodEvictionCostUSD
	}
	return v.PodInterruptionCostUSD
}

// newSpotEvents is where notices and launches note what happens in spot pools, nil where these are not learned.
func newSpotEvents(a *App) controllers.SpotPoolEvents {
	if podInterruptionCost(a.set) <= 0 {
		return nil
	}
	return store.NewSpotEvents(a.kube.SharedData, time.Now)
}

// newSpotLearner keeps the record of spot pools, nil where these are not learned.
func newSpotLearner(ctx context.Context, a *App) *spotpools.Learner {
	if podInterruptionCost(a.set) <= 0 {
		return nil
	}
	place := model.Place{Account: ownAccount(ctx), Region: a.aws.Region}
	return &spotpools.Learner{Claims: a.kube.Claims, Events: store.NewSpotEvents(a.kube.SharedData, time.Now),
		Records: discovery.SpotRecords{S3: s3.NewFromConfig(a.aws, pathStyle), Now: time.Now,
			Bucket: cmp.Or(a.set.SpotRecordBucket, a.set.CatalogBucket),
			Prefix: place.Prefix(), Key: place.KeyOf(a.set.ClusterName)},
		Now: time.Now, Log: a.log}
}
