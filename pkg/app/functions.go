package app

import (
	"context"
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-lambda-go/lambdacontext"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/controllers/stoppedcapacity"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/settings"
)

// shareFrom is the least number of equal launches that share a request. Fewer are asked for side by side, which is as
// quick and leaves each its own token.
const shareFrom = 5

// newDeps returns what every function needs, made anew for each invocation.
func (a *App) newDeps(holder string) controllers.Deps {
	freeMemory()
	collectIfWorthwhile()
	return controllers.Deps{Permission: a.permission.mayWrite, Record: a.kube.Events, Metrics: a.metrics,
		Memory: readMemory, Rules: decisionSettings(a.set), Holder: holder,
		Now: time.Now, Log: a.log}
}

// Provision launches capacity for pods that have nowhere to run. What it is invoked with says at most how long it
// looks.
func (a *App) Provision(ctx context.Context, event json.RawMessage) error {
	info, err := a.clusterInfo(ctx)
	if err != nil {
		return awaitManifests(a, err)
	}
	defer a.beginInvocation(ctx)()
	c := a.newProvision(info, leaseHolder(ctx))
	c.Diary, c.Stamp, c.Process = a.decisionLog(), a.passStamp(ctx), &a.provision
	c.Refusals = a.throttled.total
	c.Hints = a.attention.pushHints(a.set, event, time.Now())
	defer func() { a.attention.away = time.Now() }()
	return awaitManifests(a, c.Run(ctx, a.watchUntil(ctx)))
}

func (a *App) newProvision(info launch.Cluster, holder string) provision.Controller {
	return provision.Controller{Deps: a.newDeps(holder),
		Read: a.cache, Claims: a.kube.Claims, Lease: a.cache, Fleet: a.fleet, Unavailable: a.unavailable,
		Brake:  a.ledger,
		Prices: a.store, Levels: a.levels, Buffers: a.kube.Buffers,
		Rollouts: newRollouts(a, holder),
		Stopped: &stoppedcapacity.Starter{Deps: a.newDeps(holder), Claims: a.kube.Claims, Fleet: a.fleet,
			Unavailable: a.unavailable, UnavailableFor: unavailableOfferingTTL},
		Holds: a.kube.Pods, Lifecycle: a.wakeLifecycle("provision"),
		Refresh: a.newWaker(a.set.RefreshFunction, "provision"),
		Watch:   kube.WatchLease{ClusterCache: a.cache}, Cluster: info, UnavailableFor: unavailableOfferingTTL,
		AlwaysWatch: a.set.Trigger == settings.TriggerWatch, Totals: a.passTotals(),
		BatchIdle: a.set.BatchIdle, BatchMax: settings.BatchMax, ShareFrom: shareFrom, VCPUs: vcpus(os.Getenv)}
}

// mibPerVCPU is the memory, in MiB, for which Lambda gives one vCPU.
const mibPerVCPU = 1769

// vcpus returns the number of vCPUs of the function, by its memory; 0 outside Lambda.
func vcpus(getenv func(string) string) float64 {
	mib, err := strconv.Atoi(getenv("AWS_LAMBDA_FUNCTION_MEMORY_SIZE"))
	if err != nil {
		return 0
	}
	return float64(mib) / mibPerVCPU
}

// Disrupt decides which nodes go by choice.
func (a *App) Disrupt(ctx context.Context) error {
	defer a.beginInvocation(ctx)()
	c := a.newDisrupt(leaseHolder(ctx))
	c.Diary, c.Stamp = a.decisionLog(), a.passStamp(ctx)
	return awaitManifests(a, c.Run(ctx, a.watchUntil(ctx)))
}

func (a *App) newDisrupt(holder string) disrupt.Controller {
	deps := a.newDeps(holder)
	deps.Rules.ReportDisruption = a.set.Disruption != settings.DisruptionAct
	return disrupt.Controller{Deps: deps,
		Cache: &a.disruption, Read: a.cache, Placed: a.fleet, Known: &a.known, Claims: a.kube.Claims,
		Moves: a.kube.Nodes, Lease: a.cache, Unavailable: a.unavailable,
		Prices: a.store, Levels: a.levels, Rollouts: newRollouts(a, holder),
		Notes:     store.NewDisruptionMemory[disruption.Memory](a.kube.SharedData),
		Provision: a.wakeProvision("disrupt"), Lifecycle: a.wakeLifecycle("disrupt"),
		Off: a.set.Disruption == settings.DisruptionOff, Totals: a.passTotals()}
}

// newRollouts takes the steps of NodeRollouts, and tells what they allow.
func newRollouts(a *App, holder string) *rollouts.Controller {
	return &rollouts.Controller{Deps: a.newDeps(holder), Store: a.kube.Rollouts, Classes: a.kube.Classes,
		Alarms: a.alarms, Images: a.images, Version: a.kube, Told: &a.rollouts}
}

// Lifecycle takes the next step for every NodeClaim, node and instance.
func (a *App) Lifecycle(ctx context.Context, event json.RawMessage) error {
	defer writeCheckpoint(ctx, a) // after the end of the invocation for the cache
	defer a.beginInvocation(ctx)()
	l, until := a.newLifecycle(leaseHolder(ctx)), a.watchUntil(ctx)
	if a.series == nil {
		a.series = newRecorder(a)
	}
	l.Series = a.series
	l.Hints = a.attention.pushHints(a.set, event, time.Now())
	defer func() { a.attention.away = time.Now() }()
	return awaitManifests(a, l.Run(ctx, until))
}

func (a *App) newLifecycle(holder string) lifecycle.Controller {
	return lifecycle.Controller{Deps: a.newDeps(holder),
		Read: a.cache, Claims: a.kube.Claims, Nodes: a.kube.Nodes, Pods: a.kube.Pods, Holds: a.kube.Nodes, Live: a.kube,
		Instances: a.fleet, Known: &a.known, Health: a.fleet, Shifts: a.shifts, Pools: a.kube.Pools, Failures: a.ledger,
		Volumes: a.kube.Volumes, Refusals: &a.refusals, Provision: a.wakeProvision("lifecycle"),
		Refresh: a.newWaker(a.set.RefreshFunction, "lifecycle"), Watch: kube.WatchLease{ClusterCache: a.cache}}
}

// beginInvocation resumes the cache. What it returns ends the invocation: the cache is frozen, and it is told what the
// API server was asked.
func (a *App) beginInvocation(ctx context.Context) (end func()) {
	a.cache.Resume(ctx)
	return func() {
		a.cache.Freeze()
		reportTraffic(a.log, a.metrics, a.kube.TakeTraffic())
	}
}

// reportTraffic logs requests and bytes by kind, and measures their sums.
func reportTraffic(log *slog.Logger, to controllers.Metrics, byKind map[string]kube.Traffic) {
	if len(byKind) == 0 {
		return
	}
	sum := kube.Traffic{}
	fields := []any{}
	for _, kind := range slices.Sorted(maps.Keys(byKind)) {
		t := byKind[kind]
		sum.Requests, sum.Bytes = sum.Requests+t.Requests, sum.Bytes+t.Bytes
		fields = append(fields, slog.Group(kind, "requests", t.Requests, "bytes", t.Bytes))
	}
	log.Debug("api server", append([]any{"requests", sum.Requests, "bytes", sum.Bytes}, fields...)...)
	to.Put(metrics.Record{Values: []metrics.Value{metrics.Total(metrics.APIRequests, sum.Requests),
		{Name: metrics.APIBytes, Unit: "Bytes", Numbers: []float64{float64(sum.Bytes)}}}})
}

// leaseHolder names the invocation in the lease.
func leaseHolder(ctx context.Context) string {
	if lc, ok := lambdacontext.FromContext(ctx); ok {
		return lambdacontext.FunctionName + "/" + lc.AwsRequestID
	}
	return "local"
}
