package controllertest

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/controllers/stoppedcapacity"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/requirements"
	"joiner.sh/pkg/model/resources"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/fake"
	"joiner.sh/pkg/testing/objects"
)

// Every port of the functions under test is kept by fake.Ports.
var (
	_ controllers.Reader               = (*fake.Ports)(nil)
	_ notices.NodeReader               = (*fake.Ports)(nil)
	_ controllers.Claims               = (*fake.Ports)(nil)
	_ controllers.Nodes                = (*fake.Ports)(nil)
	_ lifecycle.Pods                   = (*fake.Ports)(nil)
	_ controllers.Recorder             = (*fake.Ports)(nil)
	_ controllers.Lease                = (*fake.Ports)(nil)
	_ provision.Launcher               = (*fake.Ports)(nil)
	_ lifecycle.Instances              = (*fake.Ports)(nil)
	_ lifecycle.PoolStatus             = (*fake.Ports)(nil)
	_ lifecycle.Volumes                = (*fake.Ports)(nil)
	_ controllers.UnavailableOfferings = (*fake.Ports)(nil)
	_ controllers.CatalogReader        = (*fake.Ports)(nil)
	_ notices.NodePods                 = (*fake.Ports)(nil)
	_ notices.PoolReader               = (*fake.Ports)(nil)
	_ notices.RateQuota                = (*fake.Ports)(nil)
	_ controllers.Buffers              = (*fake.Ports)(nil)
	_ stoppedcapacity.Instances        = (*fake.Ports)(nil)
	_ controllers.Waker                = (*fake.Waker)(nil)
)

// Noon returns the time when worlds begin.
func Noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// NewWorld has six real types, so that a launch names few enough offerings to reason about.
func NewWorld() *fake.World { return fake.New(objects.FewTypes(), Noon()) }

// PodOf asks for so many millicores and MiB.
func PodOf(cpu, memory int64) cluster.Pod {
	return cluster.Pod{Need: resources.List{CPU: cpu, Memory: memory * resources.MiB}, GraceSec: 5}
}

// InZone returns the pod bound to a zone.
func InZone(zone string, p cluster.Pod) cluster.Pod {
	p.NodeSelector = map[string]string{"topology.kubernetes.io/zone": zone}
	return p
}

// Rules are the settings of decisions, with the usual timeouts.
func Rules() cluster.Settings {
	return cluster.Settings{MaxClaims: 100, LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
		InitializationTimeout: 30 * time.Minute, GarbageCollectionMinAge: 30 * time.Second, MemoryOverhead: 0.075}
}

// Functions makes invocations on one world and counts them, to give each holder of the lease its own name.
type Functions struct {
	World *fake.World
	Made  int // invocations that hold leases, so far

	Repair        bool // nodes are repaired
	HoldNominated bool // new nodes are held
	ShareFrom     int  // launches that share a request

	Ceiling cluster.Ceiling // of the whole cluster
}

// newDeps returns what an invocation needs beside its ports.
func (f *Functions) newDeps(p *fake.Ports, rules cluster.Settings) controllers.Deps {
	return controllers.Deps{Record: p, Rules: rules, Holder: fmt.Sprintf("invocation-%d", f.Made), Now: f.World.Now,
		Log: slog.New(slog.DiscardHandler)}
}

// Provision is an invocation of provision on the ports.
func (f *Functions) Provision(p *fake.Ports) *provision.Controller {
	f.Made++
	return &provision.Controller{Deps: f.newDeps(p, f.Rules()),
		Read: p, Claims: p, Lease: p, Fleet: p, Unavailable: p, Brake: p, Prices: p, Holds: p, Buffers: p,
		Stopped: &stoppedcapacity.Starter{Deps: f.newDeps(p, f.Rules()), Claims: p, Fleet: p, Unavailable: p,
			UnavailableFor: 3 * time.Minute},
		Lifecycle: p.NewWaker("lifecycle"),
		Refresh:   p.NewWaker("refresh"),
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10",
			ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"},
		UnavailableFor: 3 * time.Minute, ShareFrom: f.ShareFrom}
}

// Lifecycle is an invocation of lifecycle on the ports.
func (f *Functions) Lifecycle(p *fake.Ports) *lifecycle.Controller {
	return &lifecycle.Controller{Deps: f.newDeps(p, f.Rules()),
		Read: p, Claims: p, Nodes: p, Pods: p, Live: p, Instances: p, Health: p, Pools: p, Failures: p, Volumes: p,
		Holds: p, Provision: p.NewWaker("provision")}
}

// Rules are the settings of decisions with what the fields turn on.
func (f *Functions) Rules() cluster.Settings {
	settings := Rules()
	settings.NodeRepair, settings.NominatedPodsOnly, settings.Ceiling = f.Repair, f.HoldNominated, f.Ceiling
	return settings
}

// Interruption is an invocation that handles notices on the ports.
func (f *Functions) Interruption(p *fake.Ports) *notices.Controller {
	return &notices.Controller{Deps: controllers.Deps{Record: p, Now: f.World.Now, Log: slog.New(slog.DiscardHandler)},
		Read: p, Node: p, Claims: p, Nodes: p, Unavailable: p, Pods: p, Pools: p, Quota: p,
		Provision: p.NewWaker("provision"),
		Lifecycle: p.NewWaker("lifecycle"), UnavailableFor: 3 * time.Minute,
		Rebalance:     interruption.RebalancePolicy{Choice: interruption.Tell, MinAge: 15 * time.Minute},
		QuarantineFor: 30 * time.Minute}
}

// Once returns the end of an invocation that stays for one pass: now.
func (f *Functions) Once() time.Time { return f.World.Now() }

// Rest lets the scheduled functions run for so many rounds of twenty seconds. Their errors fail the test: only the
// faulty invocation may have one.
func (f *Functions) Rest(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		ctx := context.Background()
		if err := f.Provision(f.World.Ports(fake.Fault{})).Run(ctx, f.Once()); err != nil {
			t.Fatalf("provision: %v", err)
		}
		if err := f.Lifecycle(f.World.Ports(fake.Fault{})).Run(ctx, f.World.Now().Add(10*time.Second)); err != nil {
			t.Fatalf("lifecycle: %v", err)
		}
		f.World.Advance(20 * time.Second)
	}
}

// ComeToRest lets the scheduled functions run until two rounds in a row leave no problem, for at most seven minutes.
func (f *Functions) ComeToRest(t *testing.T) {
	t.Helper()
	good := 0
	for range 21 {
		f.Rest(t, 1)
		if good++; len(f.World.ListProblems()) > 0 {
			good = 0
		}
		if good == 2 {
			return
		}
	}
	NoProblems(t, f.World)
}

// NoProblems fails the test for each problem of the world.
func NoProblems(t *testing.T, w *fake.World) {
	t.Helper()
	for _, p := range w.ListProblems() {
		t.Error(p)
	}
}

// CapacityType limits a NodePool to capacity types.
func CapacityType(values ...string) func(*cluster.Pool) {
	return func(p *cluster.Pool) {
		p.Requirements = p.Requirements.And(requirements.Of("karpenter.sh/capacity-type", values...))
	}
}

// Disrupt is an invocation of disrupt on the ports.
func (f *Functions) Disrupt(p *fake.Ports) *disrupt.Controller {
	f.Made++
	settings := f.Rules()
	settings.MinSpotInstanceTypes = 2 // the world sells six types
	return &disrupt.Controller{Deps: f.newDeps(p, settings),
		Read: p, Placed: p, Claims: p, Moves: p, Lease: p, Unavailable: p, Prices: p, Notes: p,
		Provision: p.NewWaker("provision"),
		Lifecycle: p.NewWaker("lifecycle")}
}

// Consolidate lets disrupt run beside the other functions for so many rounds, or until it changes nothing in two of
// them.
func (f *Functions) Consolidate(t *testing.T, rounds int) {
	t.Helper()
	for idle := 0; rounds > 0 && idle < 3; rounds-- {
		p := f.World.Ports(fake.Fault{})
		if err := f.Disrupt(p).Run(context.Background(), f.Once()); err != nil {
			t.Fatalf("disrupt: %v", err)
		}
		if idle++; FirstChange(p.Calls()) != "" {
			idle = 0
		}
		f.Rest(t, 1)
	}
}

// FirstChange is the first call that changes a NodeClaim or a node, or nothing.
func FirstChange(calls []string) string {
	for _, c := range calls {
		for _, verb := range []string{"taint", "untaint", "delete", "create", "annotate"} {
			if strings.HasPrefix(c, verb) {
				return c
			}
		}
	}
	return ""
}
