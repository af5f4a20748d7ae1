package dryrun_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"joiner/pkg/controllers"
	"joiner/pkg/controllers/dryrun"
	"joiner/pkg/model/cluster"
	"joiner/pkg/model/instancetypes"
	"joiner/pkg/model/instancetypes/builtin"
	"joiner/pkg/model/resources"
	"joiner/pkg/nodeclaim/interruption"
	"joiner/pkg/nodeclaim/launch"
	"joiner/pkg/testing/fake"
)

func always(open bool, err error) func(context.Context) (bool, error) {
	return func(context.Context) (bool, error) { return open, err }
}

// behind is every kind of port behind the gate, with nothing behind it: a call that comes through panics.
func behind(g *dryrun.Gate) []any {
	return []any{g.Lease(nil), g.Launcher(nil), g.Instances(nil), g.SoldOut(nil), g.Waker(controllers.WakeUnlessWatching{}, "x"), g.ClassFinder(nil, nil), g.Claims(nil),
		g.Nodes(nil), g.Pods(nil), g.Recorder(nil), g.Buffers(nil), g.Overlays(nil), g.Classes(nil), g.Pools(nil), g.PoolStatus(nil), g.NodePods(nil), g.Quota(nil), g.Tolerator(nil), g.Opener(nil), g.Rehearser(nil), g.Vigil(nil)}
}

// comesThrough calls a method with empty arguments.
func comesThrough(method reflect.Value) (reached bool) {
	in := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn(); i++ {
		if t := method.Type().In(i); t.Kind() == reflect.Pointer {
			in = append(in, reflect.New(t.Elem()))
		} else {
			in = append(in, reflect.Zero(t))
		}
	}
	defer func() { reached = recover() != nil }()
	method.Call(in)
	return false
}

func TestAClosedGateLetsReadingThroughAndNothingElse(t *testing.T) {
	reading := []string{"Instances.ListInstances", "SoldOut.ListUnavailable", "ClassFinder.FindAll", "ClassFinder.ListProfiles", "Buffers.ListBuffers", "Overlays.ReadOfferingInputs", "Classes.ListClasses", "Classes.ReadClass",
		"Pools.ListPools", "Pools.ListClaims", "NodePods.PodsOn", "Vigil.LeaseSign", "Waker.IsWatched"}
	names := []string{"Lease", "Launcher", "Instances", "SoldOut", "Waker", "ClassFinder", "Claims", "Nodes", "Pods", "Recorder", "Buffers", "Overlays", "Classes", "Pools",
		"PoolStatus", "NodePods", "Quota", "Tolerator", "Opener", "Rehearser", "Vigil"}
	for state, g := range map[string]*dryrun.Gate{
		"closed": {Open: always(false, nil), Log: slog.New(slog.DiscardHandler)},
		"unsure": {Open: always(false, errors.New("no answer")), Log: slog.New(slog.DiscardHandler)},
		"open":   {Open: always(true, nil), Log: slog.New(slog.DiscardHandler)},
	} {
		for i, port := range behind(g) {
			v := reflect.ValueOf(port)
			for m := range v.NumMethod() {
				name := names[i] + "." + v.Type().Method(m).Name
				want := state == "open" || slices.Contains(reading, name)
				if got := comesThrough(v.Method(m)); got != want {
					t.Errorf("gate %s: %s comes through: %t, want %t", state, name, got, want)
				}
			}
		}
	}
}

// busyWorld has nodes that an open gate let be launched.
func busyWorld(t *testing.T) *fake.World {
	t.Helper()
	c, err := instancetypes.DecodeCatalog(builtin.Data())
	if err != nil {
		t.Fatal(err)
	}
	c.Types = slices.DeleteFunc(c.Types, func(t instancetypes.Facts) bool { return t.Name != "m5.large" && t.Name != "m5.xlarge" })
	w := fake.New(c, time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC))
	w.Run("first", 3, cluster.Pod{Need: resources.List{CPU: 900, Memory: 512 * resources.MiB}})
	acting := run(t, w, &dryrun.Gate{Open: always(true, nil), Log: slog.New(slog.DiscardHandler)})
	if len(w.Instances()) == 0 || !slices.Contains(acting, "launch") {
		t.Fatalf("an open gate launched nothing: %v", acting)
	}
	return w
}

// TestNothingChangesBehindAClosedGate has everything to do: pods without a node, a node to register, one to drain, one that EC2 takes
// back, an instance without a claim.
func TestNothingChangesBehindAClosedGate(t *testing.T) {
	w := busyWorld(t)
	pod := cluster.Pod{Need: resources.List{CPU: 900, Memory: 512 * resources.MiB}}
	w.Tick(time.Minute)
	w.Run("second", 50, pod)
	w.DeleteClaims()
	w.Tick(time.Minute)
	before := state(w)

	var log bytes.Buffer
	calls := run(t, w, &dryrun.Gate{Open: always(false, nil), Log: slog.New(slog.NewTextHandler(&log, nil))})
	if got := state(w); got != before {
		t.Errorf("the world changed from\n%s\nto\n%s", before, got)
	}
	reads := []string{"list ", "read ", "get "}
	for _, call := range calls {
		if !slices.ContainsFunc(reads, func(r string) bool { return strings.HasPrefix(call, r) }) {
			t.Errorf("call %q behind a closed gate", call)
		}
	}
	for _, want := range []string{"would create a NodeClaim of pool general for ", "would launch: order spot ", "would taint node ", "would wake lifecycle"} {
		if !strings.Contains(log.String(), want) {
			t.Errorf("the log lacks %q:\n%s", want, log.String())
		}
	}
}

func testSettings() cluster.Settings {
	return cluster.Settings{MaxClaims: 100, LaunchTimeout: 5 * time.Minute, RegistrationTimeout: 15 * time.Minute,
		InitializationTimeout: 30 * time.Minute, GarbageCollectionMinAge: 30 * time.Second, MemoryOverhead: 0.075}
}

func newProvision(p *fake.Ports, w *fake.World, g *dryrun.Gate) *controllers.Provision {
	return &controllers.Provision{Read: p, Claims: g.Claims(p), Record: g.Recorder(p), Lease: g.Lease(p), Fleet: g.Launcher(p), SoldOut: g.SoldOut(p),
		Prices: p, Lifecycle: g.Waker(p.Waker("lifecycle"), "lifecycle"), Refresh: g.Waker(p.Waker("refresh"), "refresh"), Rules: testSettings(), Holder: "me", Holds: g.Tolerator(p),
		Cluster: launch.Cluster{Name: "demo", Endpoint: "https://api", CABundle: "Q0E=", DNSAddress: "172.20.0.10", ServiceCIDR: "172.20.0.0/16",
			Version: "1.36", Region: "us-west-2"},
		SoldOutFor: time.Minute, Now: w.Now, Log: g.Log}
}

// run is one invocation of every function, and what it called.
func run(t *testing.T, w *fake.World, g *dryrun.Gate) []string {
	t.Helper()
	p := w.Ports(fake.Fault{})
	log := g.Log
	rules := testSettings()
	provision := newProvision(p, w, g)
	lifecycle := controllers.Lifecycle{Read: p, Claims: g.Claims(p), Nodes: g.Nodes(p), Pods: g.Pods(p), Record: g.Recorder(p), Instances: g.Instances(p), Pools: g.PoolStatus(p), Volumes: p, Holds: g.Opener(p),
		Provision: g.Waker(p.Waker("provision"), "provision"), Refresh: g.Waker(p.Waker("refresh"), "refresh"), Rules: rules, Now: w.Now, Log: log}
	handler := controllers.Interruption{Read: p, Node: p, Claims: g.Claims(p), Nodes: g.Nodes(p), Record: g.Recorder(p), SoldOut: g.SoldOut(p),
		Provision: g.Waker(p.Waker("provision"), "provision"), Lifecycle: g.Waker(p.Waker("lifecycle"), "lifecycle"), SoldOutFor: time.Minute,
		Now: w.Now, Pods: g.NodePods(p), Pools: p, Quota: g.Quota(p), Log: log}
	if err := errors.Join(provision.Run(t.Context(), w.Now()), lifecycle.Run(t.Context(), w.Now())); err != nil {
		t.Fatal(err)
	}
	for _, i := range w.Instances() {
		if err := handler.HandleNotices(t.Context(), interruption.Notice{Kind: interruption.Spot, Instance: i.ID, Time: w.Now()}); err != nil {
			t.Fatal(err)
		}
	}
	return p.Calls()
}

func state(w *fake.World) string {
	return fmt.Sprintf("%+v", []any{w.Instances(), w.Claims(), w.Marks(), w.Events("Pod"), w.Events("Node"), w.Events("NodeClaim"), w.Nodes(),
		w.Woken("provision"), w.Woken("lifecycle")})
}

// TestAPassThatWasRefusedStaysRefused lets the permission come back in the middle of each function's pass, after any number of questions.
func TestAPassThatWasRefusedStaysRefused(t *testing.T) {
	for refusals := 1; refusals <= 12; refusals++ {
		w := busyWorld(t)
		w.Tick(time.Minute)
		w.Run("second", 5, cluster.Pod{Need: resources.List{CPU: 900, Memory: 512 * resources.MiB}})
		before := state(w)
		var mu sync.Mutex
		asked := 0
		g := &dryrun.Gate{Log: slog.New(slog.DiscardHandler), Open: func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return asked > refusals, nil
		}}
		ports := w.Ports(fake.Fault{})
		if err := newProvision(ports, w, g).Run(t.Context(), w.Now()); err != nil {
			t.Fatal(err)
		}
		if got := state(w); got != before {
			t.Errorf("after %d refusals the same pass changed the world: %v", refusals, ports.Calls())
		}
	}
}
