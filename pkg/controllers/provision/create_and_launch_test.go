package provision_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "joiner.sh/pkg/api/v1"
	"joiner.sh/pkg/controllers/provision"
	"joiner.sh/pkg/model/cluster"
	"joiner.sh/pkg/model/instancetypes"
	"joiner.sh/pkg/nodeclaim/launch"
	"joiner.sh/pkg/testing/controllertest"
	"joiner.sh/pkg/testing/fake"
)

var errDenied = errors.New("UnauthorizedOperation: explicit deny in a service control policy")

// A launch that a policy denies is tried again with pauses, and the function looks for the pods of others as often as
// without it.
func TestADeniedLaunchEndsNoWatch(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("tied", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	w.FailLaunch = func(o launch.Order) error {
		if o.Offerings()[0].Zone == "us-west-2a" {
			return errDenied
		}
		return nil
	}
	f := controllertest.Functions{World: w}
	p := w.Ports(fake.Fault{})
	c := f.Provision(p)
	c.AlwaysWatch = true
	late := false
	p.Before = func(call string) {
		if call == "wait" && !late && w.Now().Sub(controllertest.Noon()) > 20*time.Second {
			late = true
			w.RunApp("late", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
		}
	}
	err := c.Run(t.Context(), w.Now().Add(time.Minute))
	if !errors.Is(err, errDenied) {
		t.Errorf("error %v", err)
	}
	if n := count(p.Calls(), "list pending pods"); n < 55 {
		t.Errorf("it looked %d times in a minute, 61 times without the launch that fails", n)
	}
	if n := count(p.Calls(), "launch"); n < 4 || n > 9 {
		t.Errorf("%d launches in a minute, want pauses of 1, 2, 4, 8, 16 and 32 s", n)
	}
	if n := len(w.Instances()); n != 1 {
		t.Errorf("%d instances, want that of the late pod", n)
	}
}

// One NodeClaim of many that cannot be changed or deleted keeps no other one, and does not end the watch.
func TestARefusedClaimKeepsNoOther(t *testing.T) {
	for name, c := range map[string]struct {
		call    string
		prepare func(f *controllertest.Functions)
		done    func(w *fake.World, refused string) int // how many others are not as they are to be
	}{
		"surplus of a static pool": {"delete claim", func(f *controllertest.Functions) {
			f.World.ChangePool(func(p *cluster.Pool) { p.Static, p.Replicas, p.Hash = true, 3, "1" })
			f.Rest(t, 4)
			scaleTo(f, 0)
		}, func(w *fake.World, refused string) (n int) {
			for _, c := range w.Claims() {
				if c.Name != refused && c.Deleting.IsZero() {
					n++
				}
			}
			return n
		}},
		"launches to be resumed": {"label claim", func(f *controllertest.Functions) {
			f.World.RunApp("web", 3, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
			f.World.FailLaunch = func(launch.Order) error { return errDenied }
			if err := f.Provision(f.World.Ports(fake.Fault{})).Run(t.Context(), f.Once()); !errors.Is(err, errDenied) {
				t.Fatal(err)
			}
			f.World.FailLaunch = nil
		}, func(w *fake.World, refused string) (n int) {
			for _, c := range w.Claims() {
				if c.Name != refused && c.ProviderID == "" {
					n++
				}
			}
			return n
		}},
	} {
		f := &controllertest.Functions{World: controllertest.NewWorld()}
		c.prepare(f)
		refused := f.World.Claims()[0].Name
		p := f.World.Ports(fake.Fault{})
		p.Deny = func(call, object string) error {
			if call == c.call && object == refused {
				return errDenied
			}
			return nil
		}
		run := f.Provision(p)
		run.AlwaysWatch = true
		err := run.Run(t.Context(), f.World.Now().Add(30*time.Second))
		if !errors.Is(err, errDenied) || strings.Count(err.Error(), "UnauthorizedOperation") != 1 {
			t.Errorf("%s: error %v", name, err)
		}
		if n := c.done(f.World, refused); n != 0 {
			t.Errorf("%s: %d other claims wait for %s", name, n, refused)
		}
		if n := count(p.Calls(), "list pending pods"); n < 20 {
			t.Errorf("%s: it looked %d times in 30 s", name, n)
		}
	}
}

// A claim of a burst on which nothing can be written keeps none of the others that share its request.
func TestARefusedClaimKeepsNoneOfItsBatch(t *testing.T) {
	for _, call := range []string{"annotate claim", "label claim", "write status of claim"} {
		w := controllertest.NewWorld()
		w.RunApp("web", 5, controllertest.InZone("us-west-2b", unshared(controllertest.PodOf(1500, 3000))))
		f := &controllertest.Functions{World: w, ShareFrom: 2}
		asked := 0
		w.Refuse = func(instancetypes.OfferingKey) bool { asked++; return asked > 2 && asked < 9 }
		p := w.Ports(fake.Fault{})
		refused := ""
		p.Deny = func(c, object string) error {
			if c != call {
				return nil
			}
			if refused == "" {
				refused = object
			}
			if object == refused {
				return errDenied
			}
			return nil
		}
		run := f.Provision(p)
		run.AlwaysWatch = true
		err := run.Run(t.Context(), w.Now().Add(30*time.Second))
		waiting := 0
		for _, c := range w.Claims() {
			if c.Name != refused && c.ProviderID == "" {
				waiting++
			}
		}
		if waiting != 0 {
			t.Errorf("%s of %s is refused: %d others have no instance; error %v, calls %q", call, refused, waiting, err, p.Calls())
		}
	}
}

// slowFleet has something happen while the first instance is launched.
type slowFleet struct {
	provision.Launcher
	meanwhile func()
}

func (f *slowFleet) LaunchInstances(ctx context.Context, o launch.Order, token string) (cluster.Instance,
	[]instancetypes.UnavailableOffering, error) {
	if f.meanwhile != nil {
		f.meanwhile()
		f.meanwhile = nil
	}
	return f.Launcher.LaunchInstances(ctx, o, token)
}

// While an unfinished launch is resumed, which may take long, the cluster changes. What is decided next is about the
// cluster as it is then.
func TestPodsThatWentDuringAResumedLaunchGetNoNode(t *testing.T) {
	w := controllertest.NewWorld()
	w.RunApp("web", 1, controllertest.InZone("us-west-2a", controllertest.PodOf(1500, 3000)))
	w.FailLaunch = func(launch.Order) error { return errors.New("InternalError") }
	if _, err := controllertest.InvokeProvision(t, w, 0); err == nil || len(w.Claims()) != 1 {
		t.Fatalf("error %v, claims %+v; want one that is not launched", err, w.Claims())
	}
	w.FailLaunch = nil
	w.RunApp("brief", 1, controllertest.InZone("us-west-2b", controllertest.PodOf(1500, 3000)))
	f := controllertest.Functions{World: w}
	c := f.Provision(w.Ports(fake.Fault{}))
	c.Fleet = &slowFleet{c.Fleet, func() {
		w.StopApp("brief")
		w.SkipTime(30 * time.Second)
	}}
	if err := c.Run(t.Context(), w.Now()); err != nil {
		t.Fatal(err)
	}
	if all := w.Claims(); len(all) != 1 {
		t.Errorf("%d NodeClaims, want that of web alone: %+v", len(all), all)
	}
}

// Shortly before the launch time-out no launch is resumed: lifecycle gives the claim up meanwhile, and an instance would
// start for nobody. One whose instance runs already gets it.
func TestNoLaunchIsResumedShortlyBeforeItsTimeOut(t *testing.T) {
	for _, started := range []bool{false, true} {
		w := controllertest.NewWorld()
		w.RunApp("web", 1, controllertest.PodOf(1500, 3000))
		w.FailLaunch = func(launch.Order) error { return errors.New("InternalError") }
		if _, err := controllertest.InvokeProvision(t, w, 0); err == nil || len(w.Claims()) != 1 {
			t.Fatalf("error %v, claims %+v; want one that is not launched", err, w.Claims())
		}
		w.FailLaunch = nil
		w.SkipTime(4*time.Minute + 35*time.Second)
		if started {
			f := controllertest.Functions{World: w}
			c := w.Claims()[0]
			c.Conditions = cluster.WithCondition(c.Conditions, cluster.Condition{Type: v1.ConditionLaunched, Status: "Unknown", Reason: "InstanceStarted"})
			if _, err := f.Provision(w.Ports(fake.Fault{})).Claims.WriteClaimStatus(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := controllertest.InvokeProvision(t, w, 0); err != nil {
			t.Fatal(err)
		}
		if got := w.Claims()[0].ProviderID != ""; got != started {
			t.Errorf("its instance runs already: %t; launched: %t", started, got)
		}
	}
}
