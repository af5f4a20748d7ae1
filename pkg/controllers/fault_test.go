package controllers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/decisionlog"
	"joiner.sh/pkg/decisionlog/replay"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/metrics"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclaim/lifecycle"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
	"joiner.sh/pkg/testing/faults"
)

// measures counts what was measured, by name.
type measures map[string]float64

func (m measures) Put(records ...metrics.Record) {
	for _, r := range records {
		for _, v := range r.Values {
			for _, n := range v.Numbers {
				m[v.Name] += n
			}
		}
	}
}

// keptPasses are what was kept.
type keptPasses []decisionlog.Pass

func (k *keptPasses) WritePass(_ context.Context, p decisionlog.Pass) error {
	*k = append(*k, p)
	return nil
}

// watchedProvision is provision with what it logs, measures and keeps.
type watchedProvision struct {
	*provision.Controller
	log      *bytes.Buffer
	measured measures
	kept     keptPasses
}

func watch(f *controllertest.Functions) *watchedProvision {
	w := &watchedProvision{log: &bytes.Buffer{}, measured: measures{}}
	w.Controller = f.Provision(f.World.Ports(fake.Fault{}))
	w.Log, w.Metrics, w.Diary = slog.New(slog.NewJSONHandler(w.log, nil)), w.measured, &w.kept
	return w
}

func launched(w *fake.World) (n int) {
	for _, c := range w.Claims() {
		if c.ProviderID != "" {
			n++
		}
	}
	return n
}

// told are the events of that reason on objects of the kind.
func told(w *fake.World, kind, reason string) (out []string) {
	for _, e := range w.Events(kind) {
		if strings.Contains(e, reason) {
			out = append(out, e)
		}
	}
	return out
}

// A pod about which packing fails is told so, and counted, and the pass is kept; all others get their nodes. The next
// passes leave it out.
func TestAPassGoesOnWithoutThePodThatItFailsAbout(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 3, controllertest.PodOf(900, 1000))
	f.World.RunApp("evil", 2, controllertest.PodOf(6500, 900))
	p := watch(f)
	f.World.Follower = &faults.Fault{Stage: cluster.StageOptions, About: "default/evil"}
	p.Process = &provision.ProcessState{}
	if err := p.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if n := launched(f.World); n == 0 {
		t.Error("nobody got a node")
	}
	for _, c := range f.World.Claims() {
		if strings.Contains(fmt.Sprint(c.NominatedPods()), "evil") {
			t.Errorf("%s is for %v", c.Name, c.NominatedPods())
		}
	}
	if got := told(f.World, "Pod", "DecisionFailed"); len(got) != 2 || !strings.Contains(got[0], "evil") || !strings.Contains(got[0], "Joiner itself fails about this pod") {
		t.Errorf("events: %v", got)
	}
	if p.measured[metrics.Faults] != 1 || !strings.Contains(p.log.String(), `"level":"ERROR","msg":"Joiner itself failed","kind":"waiting pods"`) || !strings.Contains(p.log.String(), "stages.go:") {
		t.Errorf("counted %v, logged\n%s", p.measured[metrics.Faults], p.log)
	}
	if len(p.kept) != 1 || len(p.kept[0].Faults) != 1 || len(p.kept[0].Saw.Pods) < 5 {
		t.Fatalf("%d passes are kept", len(p.kept))
	}
	p.kept[0].Saw.Follower = f.World.Follower // is not stored
	if again, err := replay.DecideAgain(p.kept[0]); err != nil || !again.Same {
		t.Errorf("the replay gives another plan: %v\n%s", err, strings.Join(again.Lines, "\n"))
	}
	next := watch(f)
	next.Process = p.Process
	f.World.Advance(time.Minute)
	if err := next.Run(t.Context(), f.Once()); err != nil || next.measured[metrics.Faults] != 0 || strings.Contains(next.log.String(), "Joiner itself failed") {
		t.Errorf("the next pass tries again: %v, %v, %s", err, next.measured[metrics.Faults], next.log)
	}
	mended := watch(f)
	mended.Process, f.World.Follower = p.Process, nil
	f.World.Advance(10 * time.Minute)
	if err := mended.Run(t.Context(), f.Once()); err != nil || mended.measured[metrics.ClaimsCreated] == 0 {
		t.Errorf("after ten minutes it is not tried again: %v", err)
	}
}

// A launch of one claim fails, with an error or a panic, alone or in a shared request: the others have their instances,
// and after it is mended that one does as well, with one instance each.
func TestOneLaunchThatFailsStopsNoOther(t *testing.T) {
	for _, shared := range []int{0, 2} {
		for _, panics := range []bool{true, false} {
			t.Run(fmt.Sprintf("shared from %d, panics %t", shared, panics), func(t *testing.T) {
				f := &controllertest.Functions{World: controllertest.NewWorld(), ShareFrom: shared}
				f.World.RunApp("web", 4, controllertest.PodOf(6500, 9000))
				bad := ""
				f.World.FailLaunch = func(o launch.Order) error {
					if bad == "" {
						bad = o.ClaimName
					}
					if o.ClaimName != bad {
						return nil
					}
					if panics {
						panic("planted in the launch of " + bad)
					}
					return errors.New("planted in the launch of " + bad)
				}
				p := watch(f)
				err := p.Run(t.Context(), f.Once())
				if panics == (err != nil) {
					t.Errorf("error %v", err)
				}
				claims := f.World.Claims()
				if n := launched(f.World); len(claims) < 3 || n != len(claims)-1 && shared == 0 || n < len(claims)-1 && panics {
					t.Errorf("%d of %d claims have an instance", n, len(claims))
				}
				if panics {
					if got := told(f.World, "NodeClaim", "DecisionFailed"); p.measured[metrics.Faults] == 0 || shared == 0 && len(got) != 1 {
						t.Errorf("counted %v, events %v", p.measured[metrics.Faults], got)
					}
					if shared == 0 && (len(told(f.World, "Pod", "DecisionFailed")) == 0 || len(p.kept) == 0 || len(p.kept[len(p.kept)-1].Faults) == 0) {
						t.Errorf("its pods are not told, or the pass not kept: %v, %d kept", f.World.Events("Pod"), len(p.kept))
					}
				}
				f.World.FailLaunch = nil
				f.World.Advance(time.Minute)
				f.ComeToRest(t)
			})
		}
	}
}

// A claim whose launch panics is not tried each second.
func TestAClaimWhoseLaunchPanicsRests(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 1000))
	tries := 0
	f.World.FailLaunch = func(launch.Order) error { tries++; panic("planted") }
	p := watch(f)
	for range 20 {
		if err := p.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		f.World.Advance(time.Second)
	}
	if tries < 2 || tries > 6 {
		t.Errorf("%d tries in 20 s", tries)
	}
}

// A panic anywhere else ends the pass with an error; the lease is given back.
func TestAPanicEndsAPassInOrder(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 1, controllertest.PodOf(1500, 1000))
	p := watch(f)
	p.Prices = nil // asked for what is sold
	err := p.Run(t.Context(), f.Once())
	if _, is := errors.AsType[*controllers.FaultError](err); !is || p.measured[metrics.Faults] != 1 {
		t.Errorf("error %v, counted %v", err, p.measured[metrics.Faults])
	}
	next := watch(f)
	if err := next.Run(t.Context(), f.Once()); err != nil || launched(f.World) != 1 || strings.Contains(next.log.String(), "capacity lease held by another invocation") {
		t.Errorf("the next pass: %v, %s", err, next.log)
	}
}

// What lifecycle decides about one NodeClaim fails, or what it does: the others come into service.
func TestOneClaimThatFailsStopsNoOther(t *testing.T) {
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("web", 4, controllertest.PodOf(1500, 1000))
	if err := f.Provision(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	bad := f.World.Claims()[0].Name
	measured := measures{}
	for range 6 {
		l := f.Lifecycle(f.World.Ports(fake.Fault{}))
		l.Metrics, f.World.Follower = measured, &faults.Fault{Stage: lifecycle.StageLive, About: bad}
		if err := l.Run(t.Context(), f.Once()); err != nil {
			t.Fatal(err)
		}
		f.World.Advance(20 * time.Second)
	}
	for _, c := range f.World.Claims() {
		if c.Is("Initialized") == (c.Name == bad) {
			t.Errorf("%s: initialized %t", c.Name, c.Is("Initialized"))
		}
	}
	if measured[metrics.Faults] == 0 {
		t.Error("nothing is counted")
	}
	f.World.Follower = nil
	f.ComeToRest(t)
}

// A notice about one instance panics, and is given back to be tried again; the others are acted on.
func TestOneNoticeThatFailsStopsNoOther(t *testing.T) {
	f := controllertest.RunningPods(t)
	var notices []interruption.Notice
	for _, i := range f.World.Instances() {
		notices = append(notices, interruption.Notice{Kind: interruption.Spot, Instance: i.ID, Time: f.World.Now()})
	}
	p := f.World.Ports(fake.Fault{})
	controller := f.Interruption(p)
	measured := measures{}
	controller.Metrics = measured
	bad := ""
	p.Before = func(call string) {
		if call == "taint node for termination" && bad == "" {
			bad = call
			panic("planted")
		}
	}
	err := controller.HandleNotices(t.Context(), notices...)
	if _, is := errors.AsType[*controllers.FaultError](err); !is || measured[metrics.Faults] != 1 {
		t.Errorf("error %v, counted %v; calls %v", err, measured[metrics.Faults], p.Calls())
	}
	deleted := slices.DeleteFunc(f.World.Claims(), func(c cluster.Claim) bool { return c.Deleting.IsZero() })
	if len(deleted) < len(notices)-1 {
		t.Errorf("%d of %d claims are marked for deletion", len(deleted), len(notices))
	}
}
