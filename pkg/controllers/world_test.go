package controllers_test

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"joiner/pkg/controllers"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/instancetypes/builtin"
	"joiner/pkg/model/requirements"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/nodeclaim/launch"
	"joiner/pkg/testing/fake"
)

// Every port of the functions under test is kept by fake.Ports.
var (
	_ controllers.Reader               = (*fake.Ports)(nil)
	_ controllers.NodeReader           = (*fake.Ports)(nil)
	_ controllers.Claims               = (*fake.Ports)(nil)
	_ controllers.Nodes                = (*fake.Ports)(nil)
	_ controllers.Pods                 = (*fake.Ports)(nil)
	_ controllers.Recorder             = (*fake.Ports)(nil)
	_ controllers.Lease                = (*fake.Ports)(nil)
	_ controllers.Launcher             = (*fake.Ports)(nil)
	_ controllers.Instances            = (*fake.Ports)(nil)
	_ controllers.PoolStatus           = (*fake.Ports)(nil)
	_ controllers.Volumes              = (*fake.Ports)(nil)
	_ controllers.UnavailableOfferings = (*fake.Ports)(nil)
	_ controllers.CatalogReader        = (*fake.Ports)(nil)
	_ controllers.NodePods             = (*fake.Ports)(nil)
	_ controllers.PoolReader           = (*fake.Ports)(nil)
	_ controllers.RateQuota            = (*fake.Ports)(nil)
	_ controllers.Waker                = (*fake.Waker)(nil)
)

var fewTypes = sync.OnceValue(func() instancetypes.Catalog {
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		panic(err)
	}
	small := c
	small.Types = nil
	for _, t := range c.Types {
		switch t.Name {
		case "c5.large", "c5.xlarge", "m5.large", "m5.xlarge", "m5.2xlarge", "r5.large":
			small.Types = append(small.Types, t)
		}
	}
	return small
})

func noon() time.Time { return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC) }

// newWorld has six real types, so that a launch names few enough offers to reason about.
func newWorld() *fake.World { return fake.New(fewTypes(), noon()) }

// pattern asks for so many millicores and MiB.
func pattern(cpu, memory int64) cluster.Pod {
	return cluster.Pod{Need: resources.List{CPU: cpu, Memory: memory * resources.MiB}, GraceSec: 5}
}

func inZone(zone string, p cluster.Pod) cluster.Pod {
	p.NodeSelector = map[string]string{"topology.kubernetes.io/zone": zone}
	return p
}

func rules() cluster.Settings {
	return cluster.Settings{MaxClaims: 100, LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
		InitializationTimeout: 30 * time.Minute, GarbageCollectionMinAge: 30 * time.Second, MemoryOverhead: 0.075}
}

// functions makes invocations on one world and counts them, to give each holder of the lease its own name.
type functions struct {
	w    *fake.World
	made int

	repair bool // nodes are repaired
	hold   bool // new nodes are held
	shared int  // launches that share a request
}

func (f *functions) provision(p *fake.Ports) *controllers.Provision {
	f.made++
	return &controllers.Provision{Deps: controllers.Deps{Record: p, Rules: f.rules(), Holder: fmt.Sprintf("invocation-%d", f.made), Now: f.w.Now, Log: slog.New(slog.DiscardHandler)},
		Read: p, Claims: p, Lease: p, Fleet: p, SoldOut: p, Prices: p, Holds: p, Lifecycle: p.Waker("lifecycle"),
		Refresh: p.Waker("refresh"),
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10",
			ServiceCIDR: "172.20.0.0/16", Version: "1.36", Region: "us-west-2"},
		SoldOutFor: 3 * time.Minute, ShareFrom: f.shared}
}

func (f *functions) lifecycle(p *fake.Ports) *controllers.Lifecycle {
	return &controllers.Lifecycle{Deps: controllers.Deps{Record: p, Rules: f.rules(), Now: f.w.Now, Log: slog.New(slog.DiscardHandler)},
		Read: p, Claims: p, Nodes: p, Pods: p, Instances: p, Health: p, Pools: p, Volumes: p, Holds: p, Provision: p.Waker("provision")}
}

func (f *functions) rules() cluster.Settings {
	r := rules()
	r.NodeRepair, r.NominatedPodsOnly = f.repair, f.hold
	return r
}

func (f *functions) interruption(p *fake.Ports) *controllers.Interruption {
	return &controllers.Interruption{Deps: controllers.Deps{Record: p, Now: f.w.Now, Log: slog.New(slog.DiscardHandler)},
		Read: p, Node: p, Claims: p, Nodes: p, SoldOut: p, Pods: p, Pools: p, Quota: p, Provision: p.Waker("provision"),
		Lifecycle: p.Waker("lifecycle"), SoldOutFor: 3 * time.Minute,
		Rebalance: interruption.RebalancePolicy{Choice: interruption.Tell, MinAge: 15 * time.Minute}, QuarantineFor: 30 * time.Minute}
}

// once is how long an invocation may stay for one pass: no time at all.
func (f *functions) once() time.Time { return f.w.Now() }

// rest lets the scheduled functions run for so many rounds of twenty seconds. Their errors fail the test: only the
// faulty invocation may have one.
func (f *functions) rest(t *testing.T, rounds int) {
	t.Helper()
	for range rounds {
		ctx := context.Background()
		if err := f.provision(f.w.Ports(fake.Fault{})).Run(ctx, f.once()); err != nil {
			t.Fatalf("provision: %v", err)
		}
		if err := f.lifecycle(f.w.Ports(fake.Fault{})).Run(ctx, f.w.Now().Add(10*time.Second)); err != nil {
			t.Fatalf("lifecycle: %v", err)
		}
		f.w.Tick(20 * time.Second)
	}
}

// comeToRest lets the scheduled functions run until two rounds in a row leave no problem, for at most seven minutes.
func (f *functions) comeToRest(t *testing.T) {
	t.Helper()
	good := 0
	for range 21 {
		f.rest(t, 1)
		if good++; len(f.w.Problems()) > 0 {
			good = 0
		}
		if good == 2 {
			return
		}
	}
	noProblems(t, f.w)
}

func noProblems(t *testing.T, w *fake.World) {
	t.Helper()
	for _, p := range w.Problems() {
		t.Error(p)
	}
}

func capacityType(values ...string) func(*cluster.Pool) {
	return func(p *cluster.Pool) {
		p.Requirements = p.Requirements.And(requirements.Of("karpenter.sh/capacity-type", values...))
	}
}
