package app

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/cloudwatch"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/controllers/remotewrite"
	"joiner.sh/pkg/controllers/rollouts"
	"joiner.sh/pkg/disruption"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/controls"
	"joiner.sh/pkg/model/version"
	"joiner.sh/pkg/providers/discovery"
	"joiner.sh/pkg/providers/fleet"
	"joiner.sh/pkg/providers/invoke"
	"joiner.sh/pkg/providers/kube"
	"joiner.sh/pkg/providers/store"
	"joiner.sh/pkg/settings"
)

// Limits of AWS calls.
const (
	awsAttempts = 4
	awsTimeout  = 20 * time.Second
	// reserve is the part of an invocation that is kept for ending it in order.
	reserve = 5 * time.Second
)

// App holds what every function shares between invocations of one process.
type App struct {
	set     settings.Values
	log     *slog.Logger
	aws     aws.Config
	kube    *kube.Client
	cache   *kube.ClusterCache // of what there is much of; outlives an invocation
	cluster clusterFacts
	known   controllers.InstanceCache // what EC2 said of instances; the same
	// findAuthority is asked when the API server's certificate is not believed: refresh asks EKS, others what refresh
	// found.
	findAuthority func(context.Context) (string, error)
	fleet         *fleet.Fleet
	ledger        *store.UnavailableOfferings
	unavailable   controllers.UnavailableOfferings // the ledger, with what else is not to be had
	shifts        lifecycle.ZonalShifts            // nil without the setting
	store         *discovery.CatalogStore
	levels        discovery.RemainingCapacity
	foreign       notices.ForeignInstances // instances that earlier notices of this process were about

	deployed time.Time // when refresh heard that the stack was deployed; zero for not in this process

	permission *writePermission // of every function, asked before it writes
	metrics    controllers.Metrics

	refusals   lifecycle.EvictionBackoff // of evictions; outlives an invocation
	provision  provision.ProcessState    // of the last invocations; the same
	throttled  throttledRequests         // of the API server; the same
	attention  pushAttention
	disruption disruption.Cache // for the next pass of disrupt
	alarms     discovery.Alarms
	images     discovery.ImageFinder
	rollouts   rollouts.Told         // what was logged and found out about NodeRollouts
	series     *remotewrite.Recorder // made by the first invocation of lifecycle
}

// FromEnv reads the settings and makes the clients. It fails when a setting is wrong, and asks nobody: a start that
// waits for an answer would keep a notice waiting, and where hundreds start at once some get none.
func FromEnv(ctx context.Context) (*App, error) {
	set, err := settings.ParseSettings(os.Getenv)
	if err != nil {
		return nil, err
	}
	cfg, err := config.LoadDefaultConfig(ctx,
		config.WithHTTPClient(awshttp.NewBuildableClient().WithTimeout(awsTimeout)),
		config.WithRetryer(func() aws.Retryer { return retry.AddWithMaxAttempts(retry.NewStandard(), awsAttempts) }),
		config.WithAppID("joiner"))
	if err != nil {
		return nil, fmt.Errorf("load aws configuration: %w", err)
	}
	a := &App{set: set, aws: cfg, log: newLog(set.LogLevel, os.Stdout), attention: pushAttention{away: time.Now()}}
	a.log.Info("function starts", "version", version.Number)
	if err := a.connectCluster(); err != nil {
		return nil, err
	}
	if set.Mode == settings.ModeObserve {
		a.log = a.log.With("mode", set.Mode) // what is said to be done is only decided
	}
	a.metrics = &emfWriter{out: controls.JSONLines{To: os.Stdout}, cluster: set.ClusterName, now: time.Now, log: a.log}
	a.permission = a.newPermission()
	e := ec2.NewFromConfig(cfg)
	a.fleet = &fleet.Fleet{EC2: e, Cluster: set.ClusterName, Now: time.Now}
	a.levels = discovery.RemainingCapacity{EC2: e}
	a.images = discovery.ImageFinder{EC2: e}
	a.alarms = discovery.Alarms{CloudWatch: cloudwatch.NewFromConfig(cfg)}
	a.ledger = store.NewUnavailableOfferings(a.kube.SharedData, time.Now)
	a.store = discovery.NewStore(s3.NewFromConfig(cfg, pathStyle),
		set.CatalogBucket, discovery.CatalogMaxAge, time.Now)
	a.unavailable = a.ledger
	if set.ZonalShift {
		shifts := newZonalShifts(a)
		a.unavailable, a.shifts = shifts, shifts
	}
	return a, nil
}

// newZonalShifts is the ledger, in which zones are unavailable that the cluster is shifted away from.
func newZonalShifts(a *App) *discovery.ZonalShifts {
	return &discovery.ZonalShifts{UnavailableOfferings: a.ledger, ARC: arczonalshift.NewFromConfig(a.aws),
		Now: time.Now, Log: a.log,
		ARN: func(ctx context.Context) (string, error) { return clusterARN(ctx, a.set.ClusterName) },
		Zones: func(ctx context.Context) (map[string]string, error) {
			c, _, err := a.store.ReadCatalog(ctx)
			return c.Zones, err
		}}
}

const (
	// launchTimeout is the time that a NodeClaim may be without an instance before it is given up, registrationTimeout
	// without a node.
	launchTimeout, registrationTimeout = 5 * time.Minute, 15 * time.Minute
	// initializationTimeout is the time that a node that joined may be not ready for pods before it is given up.
	initializationTimeout = 30 * time.Minute
	// detachTimeout is the longest wait of a drained node for its volumes to be detached. Karpenter waits for ever.
	detachTimeout = 30 * time.Minute
	// garbageCollectionMinAge is the age from which an instance without a NodeClaim is terminated.
	garbageCollectionMinAge = 30 * time.Second
	// unavailableOfferingTTL is the time for which an offering that had no capacity is not tried again.
	unavailableOfferingTTL = 3 * time.Minute
)

func clusterCeiling(v settings.Values) cluster.Ceiling {
	return cluster.Ceiling{Nodes: v.MaxNodes, NodesPerMinute: v.MaxNodesPerMinute,
		MillionthsUSD: int64(v.MaxUSDPerHour * 1e6)}
}

func decisionSettings(v settings.Values) cluster.Settings {
	return cluster.Settings{
		NominatedPodsOnly:         v.NominatedPodsOnly,
		IgnorePreferences:         v.PreferencePolicy == settings.PreferenceIgnore,
		RelaxMinValues:            v.MinValuesPolicy == settings.MinValuesBestEffort,
		MaxClaims:                 v.MaxNodeClaimsPerPass,
		Ceiling:                   clusterCeiling(v),
		DeclaredNodeUSD:           v.PerNodeOverheadUSD,
		PodEvictionCostUSD:        v.PodEvictionCostUSD,
		DriftedPerCommand:         v.DriftedPerCommand,
		NoSpotToSpotConsolidation: !v.SpotToSpotConsolidation,
		LaunchTimeout:             launchTimeout,
		RegistrationTimeout:       registrationTimeout,
		InitializationTimeout:     initializationTimeout,
		DetachTimeout:             detachTimeout,
		NodeRepair:                v.NodeRepair,
		GarbageCollectionMinAge:   garbageCollectionMinAge,
		MemoryOverhead:            v.VMMemoryOverheadPercent,
		ReservedENIs:              int64(v.ReservedENIs),
		OpenReservations:          !v.ReservedCapacity,
		IPv6:                      strings.Contains(v.ServiceCIDR, ":"),
	}
}

func (a *App) newWaker(name, by string) invoke.Function {
	return invoke.Function{Lambda: lambda.NewFromConfig(a.aws), Name: name, Reason: by}
}

// wakeProvision and wakeLifecycle ask first whether an invocation watches already.
func (a *App) wakeProvision(by string) controllers.Waker {
	return a.wakeUnlessWatching("provision", a.set.ProvisionFunction, by)
}

func (a *App) wakeLifecycle(by string) controllers.Waker {
	return a.wakeUnlessWatching("lifecycle", a.set.LifecycleFunction, by)
}

func (a *App) wakeUnlessWatching(function, name, by string) controllers.Waker {
	return controllers.WakeUnlessWatching{Waker: a.newWaker(name, by), Of: a.kube.Leases, Function: function,
		Log: a.log}
}

// watchUntil returns the time at which an invocation that found work stops watching for more. One that may change
// nothing would only see the same again.
func (a *App) watchUntil(ctx context.Context) time.Time {
	end := time.Now().Add(a.set.WatchDuration)
	if open, err := a.permission.mayWrite(ctx); err != nil || !open {
		return time.Now()
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-reserve).Before(end) {
		end = deadline.Add(-reserve)
	}
	return end
}

// newLog writes one JSON object a line, whatever is in it.
func newLog(level string, to io.Writer) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo // the setting was checked; this is for an empty one
	}
	return slog.New(slog.NewJSONHandler(controls.JSONLines{To: to}, &slog.HandlerOptions{Level: l}))
}
