package controllers_test

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

	awsv1 "joiner.sh/pkg/api/aws/v1"
	"joiner.sh/pkg/api/v1alpha1"
	"joiner.sh/pkg/controllers"
	"joiner.sh/pkg/controllers/disrupt"
	"joiner.sh/pkg/controllers/lifecycle"
	"joiner.sh/pkg/controllers/notices"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/controllers/refresh"
	"joiner.sh/pkg/nodeclaim/interruption"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/nodeclass"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

// readingMethods are the methods of ports that change nothing. A new method counts as one that writes until it is named
// here.
func readingMethods() []string {
	return []string{"PendingPods", "StaticPools", "ListClaims", "ReadSnapshot", "CachedSnapshot", "ReadClaim", "WithVolumes", "ReadClass", "Wait", "ListAttachments", "ListInstances",
		"ListStatuses", "RemainingReservations", "RemainingAddresses", "FindGroup", "ListUnavailable", "ReadCatalog", "LeaseSign", "ListBuffers",
		"ReadMemory", "ClaimsOf", "ReadNode", "PodsOn", "PoolAnnotations", "ListClasses", "ListPools", "ListNodes", "ListProfiles", "ReadOfferingInputs",
		"AddRollouts", "ReadRevision", "ListShifts",
		"ChangeTotals",                  // writes when the lease is given back
		"AdvanceRollouts", "StartNodes", // ask for themselves: tests of rollouts and stoppedcapacity
		"Put", "Refresh", "WritePass"} // the last two write into a bucket of Joiner's own
}

// isRead reports whether a call of a fake changes nothing.
func isRead(call string) bool {
	return slices.ContainsFunc([]string{"list ", "read ", "get ", "describe ", "recall", "wait", "find for ", "market"}, func(p string) bool { return strings.HasPrefix(call, p) })
}

func writes(calls []string) []string {
	return slices.DeleteFunc(slices.Clone(calls), isRead)
}

// maker is a shop that tells of what refresh makes in AWS when it only seems to ask.
type maker struct{ *controllertest.RefreshWorld }

func (m maker) FindAll(ctx context.Context, c *awsv1.EC2NodeClass) nodeclass.Resolved {
	m.Did = append(m.Did, "make profile for "+c.Name)
	return m.RefreshWorld.FindAll(ctx, c)
}

func (m maker) DryRun(context.Context, launch.Order) error {
	m.Did = append(m.Did, "make launch template")
	return nil
}

// permissionCase is one function of the stack in a world in which it has something to do.
type permissionCase struct {
	name   string
	says   []string // in a pass without permission
	run    func(t *testing.T, p controllers.Permission, log *slog.Logger) error
	writes func() []string
}

func permissionCases(t *testing.T) []permissionCase {
	t.Helper()
	pods, s := controllertest.HalfEmpty(t), controllertest.NewRefreshWorld()
	f := &controllertest.Functions{World: controllertest.NewWorld()}
	f.World.RunApp("first", 3, controllertest.PodOf(900, 512))
	f.Rest(t, 3)
	f.World.RunApp("second", 9, controllertest.PodOf(900, 512))
	first := f.World.Claims()[0]
	f.World.DeleteClaims()
	f.World.Advance(time.Minute)
	s.AddClass("default")
	s.AddPool("general", "default")
	worlds := map[*controllertest.Functions]*fake.Ports{f: f.World.Ports(fake.Fault{}), pods: pods.World.Ports(fake.Fault{})}
	ports := func(f *controllertest.Functions) *fake.Ports {
		worlds[f] = f.World.Ports(fake.Fault{})
		return worlds[f]
	}
	calls := func(f *controllertest.Functions) func() []string {
		return func() []string { return writes(worlds[f].Calls()) }
	}
	return []permissionCase{
		{"lifecycle", []string{"delete launch templates older than 1h", "taint node", "delete node"}, func(t *testing.T, p controllers.Permission, log *slog.Logger) error {
			l := f.Lifecycle(ports(f))
			l.Permission, l.Log = p, log
			return l.Run(t.Context(), f.Once())
		}, calls(f)},
		{"provision", []string{"launch spot"}, func(t *testing.T, p controllers.Permission, log *slog.Logger) error {
			v := f.Provision(ports(f))
			v.Permission, v.Log = p, log
			return v.Run(t.Context(), f.Once())
		}, calls(f)},
		{"interruption", []string{"annotate NodeClaim", "mark 1 offerings", "wake lifecycle"}, func(t *testing.T, p controllers.Permission, log *slog.Logger) error {
			c := f.Interruption(ports(f))
			c.Permission, c.Log = p, log
			_, id, _ := strings.Cut(first.ProviderID, "/i-")
			return c.HandleNotices(t.Context(), interruption.Notice{Kind: interruption.Spot, Instance: "i-" + id, Time: f.World.Now()})
		}, calls(f)},
		{"disrupt", nil, func(t *testing.T, p controllers.Permission, log *slog.Logger) error {
			c := pods.Disrupt(ports(pods))
			c.Permission, c.Log = p, log
			return c.Run(t.Context(), pods.Once())
		}, calls(pods)},
		{"refresh", []string{"annotate EC2NodeClass default", "write status of EC2NodeClass default", "write status of NodePool general", "annotate NodePool general"}, func(t *testing.T, p controllers.Permission, log *slog.Logger) error {
			s.Did, s.Events = nil, nil
			r := s.NewRefresh()
			r.Finder, r.Rehearse = maker{s}, maker{s}
			r.Permission, r.Log = p, log
			return r.Run(t.Context())
		}, func() []string {
			out := writes(s.Did)
			for _, e := range s.Events {
				out = append(out, "event "+e.Reason)
			}
			return out
		}},
	}
}

// TestAFunctionThatMayNotWriteWritesNothing lets each function run without permission, and without an answer, in a
// world that has much to do. With permission it writes.
func TestAFunctionThatMayNotWriteWritesNothing(t *testing.T) {
	for _, c := range permissionCases(t) {
		t.Run(c.name, func(t *testing.T) {
			var log bytes.Buffer
			said := slog.New(slog.NewTextHandler(&log, nil))
			if err := c.run(t, func(context.Context) (bool, error) { return false, nil }, said); err != nil || len(c.writes()) > 0 {
				t.Errorf("without permission: error %v, calls %v", err, c.writes())
			}
			for _, want := range c.says {
				if !strings.Contains(log.String(), "dry-run: "+want) {
					t.Errorf("the log lacks %q:\n%s", "dry-run: "+want, log.String())
				}
			}
			away := errors.New("no answer")
			if err := c.run(t, func(context.Context) (bool, error) { return false, away }, said); !errors.Is(err, away) || len(c.writes()) > 0 {
				t.Errorf("without an answer: error %v, calls %v", err, c.writes())
			}
			if err := c.run(t, nil, said); err != nil || len(c.writes()) == 0 {
				t.Errorf("with permission: error %v, calls %v", err, c.writes())
			}
		})
	}
}

// TestAPassThatWasRefusedStaysRefused lets the permission come back in the middle of a pass, after any number of
// questions.
func TestAPassThatWasRefusedStaysRefused(t *testing.T) {
	for _, c := range permissionCases(t) {
		for refusals := 1; refusals <= 6; refusals++ {
			var mu sync.Mutex
			asked := 0
			permission := func(context.Context) (bool, error) {
				mu.Lock()
				defer mu.Unlock()
				asked++
				return asked > refusals, nil
			}
			if err := c.run(t, permission, slog.New(slog.DiscardHandler)); err != nil {
				t.Fatal(err)
			}
			// which comes before the pass
			if sweeps := c.name == "lifecycle" && refusals == 1; !sweeps && len(c.writes()) > 0 {
				t.Errorf("%s, refused %d times: the same pass made the calls %v", c.name, refusals, c.writes())
				break
			}
		}
	}
}

// TestAPassThatLosesThePermissionStops in the middle of its launches, and says what it did not do. What is launched by
// then is written down.
func TestAPassThatLosesThePermissionStops(t *testing.T) {
	for answers := 1; answers < 30; answers += 3 {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		for i := range 6 {
			f.World.RunApp(fmt.Sprint("web-", i), 1, controllertest.PodOf(7000, 20000))
		}
		var mu sync.Mutex
		asked := 0
		var log bytes.Buffer
		ports := f.World.Ports(fake.Fault{})
		controller := f.Provision(ports)
		controller.Log = slog.New(slog.NewTextHandler(&log, nil))
		controller.Permission = func(context.Context) (bool, error) {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return asked <= answers, nil
		}
		if err := controller.Run(t.Context(), f.World.Now().Add(time.Minute)); err != nil {
			t.Fatal(err)
		}
		created := len(slices.DeleteFunc(ports.Calls(), func(c string) bool { return c != "create claim" && c != "launch" }))
		launched, told := len(f.World.Instances()), strings.Count(log.String(), "dry-run: launch ")
		if created > answers || len(f.World.Claims())+told != 6 {
			t.Errorf("%d answers: %d creations and launches, %d instances, %d claims, %d launches told; want none without an answer and all six said or done", answers, created, launched, len(f.World.Claims()), told)
		}
	}
}

// TestTheFakesTellEveryWrite calls every method of the functions' ports that is not named as reading: the fakes of
// these tests would tell of it.
func TestTheFakesTellEveryWrite(t *testing.T) {
	for _, function := range []any{provision.Controller{}, lifecycle.Controller{}, disrupt.Controller{}, notices.Controller{}, refresh.Controller{}} {
		for _, field := range reflect.VisibleFields(reflect.TypeOf(function)) {
			if !field.IsExported() || field.Type.Kind() != reflect.Interface || field.Name == "Preview" {
				continue
			}
			for m := range field.Type.NumMethod() {
				if name := field.Type.Method(m).Name; !slices.Contains(readingMethods(), name) && !tellsWrite(name) {
					t.Errorf("%T.%s: a call of %s is not seen as a write; if it reads, name it as reading", function, field.Name, name)
				}
			}
		}
	}
}

// tellsWrite reports whether one of the fakes has the method and sees a call of it.
func tellsWrite(method string) bool {
	w, s := controllertest.NewWorld(), controllertest.NewRefreshWorld()
	s.AddClass("").ResourceVersion = "" // what empty arguments are about
	s.AddPool("", "")
	s.Pools[""].ResourceVersion = ""
	s.Overlays, s.Meddled = []*v1alpha1.NodeOverlay{{}}, "none"
	p := w.Ports(fake.Fault{})
	for _, port := range []any{p, p.NewWaker("x"), maker{s}} {
		v := reflect.ValueOf(port).MethodByName(method)
		if !v.IsValid() {
			continue
		}
		callEmpty(v)
		if len(writes(p.Calls())) > 0 || len(writes(s.Did)) > 0 || len(s.Events) > 0 {
			return true
		}
	}
	return false
}

// callEmpty calls a method with empty arguments. That it may panic does not matter.
func callEmpty(method reflect.Value) {
	in := []reflect.Value{reflect.ValueOf(context.Background())}
	for i := 1; i < method.Type().NumIn(); i++ {
		if t := method.Type().In(i); t.Kind() == reflect.Pointer {
			in = append(in, reflect.New(t.Elem()))
		} else {
			in = append(in, reflect.Zero(t))
		}
	}
	defer func() { _ = recover() }()
	method.Call(in)
}

// TestACommandThatIsDueIsTold once it was proposed and holds, by a pass that may not begin it.
func TestACommandThatIsDueIsTold(t *testing.T) {
	f := controllertest.HalfEmpty(t)
	if err := f.Disrupt(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	f.Rest(t, 1)
	var log bytes.Buffer
	ports := f.World.Ports(fake.Fault{})
	c := f.Disrupt(ports)
	c.Permission, c.Log = func(context.Context) (bool, error) { return false, nil }, slog.New(slog.NewTextHandler(&log, nil))
	if err := c.Run(t.Context(), f.Once()); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), "dry-run: begin ") || len(writes(ports.Calls())) > 0 {
		t.Errorf("the calls are %v and the log is\n%s", writes(ports.Calls()), log.String())
	}
}
