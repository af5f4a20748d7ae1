// Package app makes the programs out of settings, adapters and control. It is the only place that reads the environment and
// that knows which adapter stands behind which port.
package app

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/aws/retry"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/arczonalshift"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/eks"
	"github.com/aws/aws-sdk-go-v2/service/lambda"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sts"

	"joiner/pkg/cluster"
	"joiner/pkg/control"
	"joiner/pkg/discover"
	"joiner/pkg/fleet"
	"joiner/pkg/gate"
	"joiner/pkg/kube"
	"joiner/pkg/launch"
	"joiner/pkg/ledger"
	"joiner/pkg/pack"
	"joiner/pkg/setting"
	"joiner/pkg/wake"
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
	set     setting.Values
	log     *slog.Logger
	aws     aws.Config
	kube    *kube.Client
	cluster launch.Cluster
	fleet   *fleet.Fleet
	ledger  *ledger.Ledger
	soldOut control.SoldOut // the ledger, with what else is not to be had
	store   *discover.Store
	levels  discover.Levels
	foreign control.Foreign // instances that earlier notices of this process were about
	gate    *gate.Gate      // before every port that changes something

	permission *permission // what it asks
	metrics    control.Metrics

	refusals  control.Refusals // of evictions; outlives an invocation
	aside     control.Aside    // what decisions fail about; the same
	attention attention
	depot     pack.Depot // what is sold, for the next pass of disrupt
}

// FromEnv reads the settings, finds the cluster and makes the clients. It fails when a setting is wrong or when EKS does not
// know the cluster.
func FromEnv(ctx context.Context) (*App, error) {
	set, err := setting.Parse(os.Getenv)
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
	a := &App{set: set, aws: cfg, log: newLog(set.LogLevel), attention: attention{away: time.Now()}}
	if err := a.connect(ctx); err != nil {
		return nil, err
	}
	if set.Mode == setting.ModeObserve {
		a.log = a.log.With("mode", set.Mode) // what is said to be done is only decided
	}
	a.metrics = &metrics{out: os.Stdout, cluster: set.ClusterName, now: time.Now, log: a.log}
	a.permission = a.newPermission()
	a.gate = &gate.Gate{Open: a.permission.open, Log: a.log}
	e := ec2.NewFromConfig(cfg)
	a.fleet = &fleet.Fleet{EC2: e, Cluster: set.ClusterName, Now: time.Now}
	a.levels = discover.Levels{EC2: e}
	a.ledger = ledger.New(a.kube, time.Now)
	a.store = discover.NewStore(s3.NewFromConfig(cfg, pathStyle),
		set.CatalogBucket, set.CatalogMaxAge, time.Now)
	a.soldOut = a.ledger
	if set.ZonalShift {
		a.soldOut = a.shifts()
	}
	return a, nil
}

// shifts is the ledger, in which zones are sold out that the cluster is shifted away from.
func (a *App) shifts() *discover.Shifts {
	return &discover.Shifts{SoldOut: a.ledger, ARC: arczonalshift.NewFromConfig(a.aws), Now: time.Now, Log: a.log,
		ARN: func(ctx context.Context) (string, error) {
			c, err := a.describe(ctx)
			return c.ARN, err
		},
		Zones: func(ctx context.Context) (map[string]string, error) {
			c, _, err := a.store.Catalog(ctx)
			return c.Zones, err
		}}
}

// connect finds the API server, in the settings or by asking EKS, and makes the client for it.
func (a *App) connect(ctx context.Context) error {
	c := launch.Cluster{Name: a.set.ClusterName, Endpoint: a.set.ClusterEndpoint, CABundle: a.set.ClusterCABundle, Region: a.aws.Region}
	if c.Endpoint == "" || c.CABundle == "" {
		found, err := a.describe(ctx)
		if err != nil {
			return err
		}
		c.Endpoint, c.CABundle, c.ServiceCIDR = found.Endpoint, found.CABundle, found.ServiceCIDR
	}
	ca, err := base64.StdEncoding.DecodeString(c.CABundle)
	if err != nil {
		return fmt.Errorf("decode certificate authority of cluster %s: %w", c.Name, err)
	}
	a.kube, err = kube.New(kube.Config{Endpoint: c.Endpoint, CA: ca, UserAgent: "joiner",
		Token: kube.EKSToken(sts.NewFromConfig(a.aws), c.Name, time.Now), Now: time.Now})
	a.cluster = c
	return err
}

func (a *App) describe(ctx context.Context) (discover.Cluster, error) {
	return discover.Describe(ctx, eks.NewFromConfig(a.aws), a.set.ClusterName)
}

func (a *App) rules() cluster.Rules {
	return cluster.Rules{
		Hold:                  a.set.HoldNodes,
		IgnorePreferences:     a.set.PreferencePolicy == setting.PreferenceIgnore,
		RelaxMinValues:        a.set.MinValuesPolicy == setting.MinValuesBestEffort,
		MaxClaims:             a.set.MaxClaimsPerTick,
		SearchSteps:           cmp.Or(a.set.SearchSteps, cluster.NoSearch),
		NodeCostUSD:           a.set.NodeCostUSD,
		PriceMargin:           a.set.PriceMargin,
		SpotTypes:             a.set.SpotTypes,
		SpotPoolShare:         a.set.SpotPoolShare,
		Payback:               a.set.PaybackTime,
		MoveUSD:               a.set.PodMoveUSD,
		DisruptionSteps:       a.set.DisruptionSteps,
		DisruptionWaves:       a.set.DisruptionWaves,
		DriftedPerCommand:     a.set.DriftedPerCommand,
		LaunchTimeout:         a.set.LaunchTimeout,
		RegistrationTimeout:   a.set.RegistrationTimeout,
		InitializationTimeout: a.set.InitializationTimeout,
		DetachTimeout:         a.set.DetachTimeout,
		NodeRepair:            a.set.NodeRepair,
		MinLeakAge:            a.set.MinLeakAge,
		MemoryOverhead:        a.set.VMMemoryOverheadPercent,
		ReservedENIs:          int64(a.set.ReservedENIs),
	}
}

func (a *App) wake(name, by string) control.Waker {
	return a.gate.Waker(a.invoked(name, by), name)
}

func (a *App) invoked(name, by string) wake.Function {
	return wake.Function{Lambda: lambda.NewFromConfig(a.aws), Name: name, Reason: by}
}

// wakeProvision and wakeLifecycle ask first whether an invocation watches already.
func (a *App) wakeProvision(by string) control.Waker {
	return a.considerate("provision", a.set.ProvisionFunction, by)
}

func (a *App) wakeLifecycle(by string) control.Waker {
	return a.considerate("lifecycle", a.set.LifecycleFunction, by)
}

func (a *App) considerate(function, name, by string) control.Waker {
	return a.gate.Waker(control.Considerate{Waker: a.invoked(name, by), Of: a.kube, Function: function, Log: a.log}, name)
}

// until is when an invocation that found work stops watching for more. One that may change nothing would only see the same again.
func (a *App) until(ctx context.Context) time.Time {
	end := time.Now().Add(a.set.Stay)
	if open, err := a.gate.Open(ctx); err != nil || !open {
		return time.Now()
	}
	if deadline, ok := ctx.Deadline(); ok && deadline.Add(-reserve).Before(end) {
		end = deadline.Add(-reserve)
	}
	return end
}

func newLog(level string) *slog.Logger {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		l = slog.LevelInfo // the setting was checked; this is for an empty one
	}
	return slog.New(slog.NewJSONHandler(os.Stdout, &slog.HandlerOptions{Level: l}))
}
